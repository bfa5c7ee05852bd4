from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import ColumnError, ObjectNotFoundError  # noqa: E402
from syft_core.messages import Run  # noqa: E402
from syft_core.pointers.object_pointer import new_id  # noqa: E402
from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.arranging import Arrange, Columns, Fill, Half, Scale, Splits, arrange_there  # noqa: E402

ROWS = 40
COLUMNS = ("age", sy.Column("ward", "category", categories=("a", "b", "c")), "ill")


def make_table(private: bool = True, rows: int = ROWS) -> torch.Tensor:
    table = torch.stack([torch.arange(float(rows)), torch.arange(float(rows)) % 3, torch.ones(rows)], dim=1)
    named = table.name_columns(*COLUMNS)
    return (named.private_tensor(["ana"]) if private else named).tag("#patients")


@pytest.fixture
def table(hook: Any, bob: Any) -> Any:
    hook.local_worker.user = "eve"
    bob.load_data([make_table()])
    return bob.search("#patients")[0]


def read(worker: Any, pointer: Any) -> Any:
    value = worker.object_store.entry(pointer.id_at_location).value
    return getattr(value, "child", value)


def maker_of(worker: Any, pointer: Any) -> Any:
    return worker.object_store.entry(pointer.id_at_location).made_by


def take_columns(table: Any, *names: str, **options: Any) -> list[Any]:
    return arrange_there(Columns(names or ("age", "ward"), "ill", "float32", **options), [table])


def ages(worker: Any, parts: list[Any]) -> list[float]:
    found: list[float] = read(worker, parts[0])[:, 0].tolist()
    return found


# --- steps


def test_a_worker_makes_inputs_and_targets_of_columns_by_its_own_schema(bob: Any, table: Any) -> None:
    inputs, targets = take_columns(table, "ward", one_hot=True)

    assert read(bob, inputs)[:4].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert (read(bob, inputs).dtype, read(bob, targets).dtype) == (torch.float32, torch.float32)
    assert torch.equal(read(bob, targets), torch.ones(ROWS))


def test_results_share_no_memory_with_the_data(bob: Any, table: Any) -> None:
    for result in take_columns(table, "age"):
        assert not bob.object_store.find_sharing(read(bob, result))[1:]
        read(bob, result).fill_(7.0)

    assert read(bob, table)[:, 0].tolist() == list(range(ROWS))


def test_constants_are_applied_as_they_are_here(bob: Any, table: Any) -> None:
    inputs, _ = take_columns(table)
    constants = torch.tensor([[1.5, 0.3], [2.0, 0.7]])

    (scaled,) = arrange_there(Scale(constants), [inputs])

    assert torch.equal(read(bob, scaled), (read(bob, inputs) - constants[0]) / constants[1])


def test_missing_values_are_filled(hook: Any, bob: Any) -> None:
    bob.load_data([torch.tensor([[math.nan, 1.0], [2.0, math.nan]]).tag("#x")])

    (filled,) = arrange_there(Fill(torch.tensor([[5.0, 6.0]])), bob.search("#x"))

    assert filled.get().tolist() == [[5.0, 1.0], [2.0, 6.0]]


# --- splits of restricted data


def test_a_worker_draws_the_rows_of_private_data_itself(bob: Any, table: Any) -> None:
    parts = take_columns(table)

    found = [ages(bob, arrange_there(Half(0.25, True, seed), parts)) for seed in (0, 1)]
    rest = ages(bob, arrange_there(Half(0.25, False), parts))

    assert found[0] == found[1]
    assert len(found[0]) == ROWS // 4
    assert sorted(found[0] + rest) == list(range(ROWS))
    public = sy.VirtualWorker(bob.hook, id="public")
    public.load_data([make_table(private=False)])
    assert ages(public, arrange_there(Half(0.25, True, 0), take_columns(public.search("#patients")[0]))) != found[0]


def test_two_workers_draw_other_rows(hook: Any, bob: Any, alice: Any, table: Any) -> None:
    alice.load_data([make_table()])

    found = [ages(w, arrange_there(Half(0.5, True), take_columns(w.search("#patients")[0]))) for w in (bob, alice)]

    assert found[0] != found[1]


def test_parts_of_a_dataset_have_the_same_rows_whenever_they_are_split(bob: Any, table: Any) -> None:
    parts = take_columns(table)
    (scaled,) = arrange_there(Scale(torch.tensor([[0.0, 0.0], [2.0, 1.0]])), parts[:1])

    before = ages(bob, arrange_there(Half(0.25, True), parts))
    after = ages(bob, arrange_there(Half(0.25, True), [scaled, parts[1]]))
    alone = ages(bob, arrange_there(Half(0.25, True), parts[:1]))

    assert before == [2 * age for age in after] == alone


def test_another_share_of_private_data_is_refused(bob: Any, table: Any) -> None:
    parts = take_columns(table)
    arrange_there(Half(0.25, True), parts)

    with pytest.raises(fl.FederatedError, match="with another share: 10 of its 40 rows are for testing, and comparing"):
        arrange_there(Half(0.275, True), parts)
    with pytest.raises(fl.FederatedError, match="with another share"):
        arrange_there(Half(0.5, False), take_columns(table, "age"))
    assert len(ages(bob, arrange_there(Half(0.2501, False), parts))) == 30  # the same number of rows


def test_a_half_may_be_split_again_in_one_way(bob: Any, table: Any) -> None:
    half = arrange_there(Half(0.25, False), take_columns(table))

    found = [ages(bob, arrange_there(Half(0.2, is_test), half)) for is_test in (True, False)]

    assert sorted(found[0] + found[1]) == ages(bob, half)
    with pytest.raises(fl.FederatedError, match="with another share: 6 of its 30 rows"):
        arrange_there(Half(0.3, True), half)


def test_a_worker_that_was_started_again_draws_the_same_rows(hook: Any, tmp_path: Path) -> None:
    found = []
    for key in ("key", "key", "new key"):
        worker = sy.VirtualWorker(hook, id="carol")
        worker.studies.key_file = tmp_path / key
        worker.load_data([make_table()])
        found.append(ages(worker, arrange_there(Half(0.25, True), take_columns(worker.search("#patients")[0]))))
        hook.local_worker._known_workers.pop("carol")

    assert found[0] == found[1] != found[2]


def test_another_share_has_another_order(bob: Any) -> None:
    splits = Splits(bob)

    one, other = splits.find_order([], 1000, 100), splits.find_order([], 1000, 101)

    assert sorted(one.tolist()) == list(range(1000))
    assert not set(one[:100].tolist()) <= set(other[:101].tolist())


# --- what rules see


def test_an_arrangement_of_whole_data_is_whole(bob: Any, table: Any) -> None:
    inputs, targets = take_columns(table)
    (half, _) = arrange_there(Half(0.25, False), [inputs, targets])

    for pointer in (inputs, targets, half):
        (operand, *_) = maker_of(bob, pointer).operands
        assert (maker_of(bob, pointer).protocol, operand.is_whole, operand.tags) == ("arrange", True, ("#patients",))


@pytest.mark.parametrize(("share", "is_whole"), [(0.25, True), (0.225, False), (0.775, False), (0.75, True)])
def test_halves_of_few_rows_are_not_whole(bob: Any, table: Any, share: float, is_whole: bool) -> None:
    """The sum over 31 of 40 rows shows the other nine, next to the sum over all."""
    for is_test in (True, False):
        (half, *_) = arrange_there(Half(share, is_test), take_columns(table))
        assert maker_of(bob, half).operands[0].is_whole is is_whole
        (scaled,) = arrange_there(Scale(torch.tensor([[0.0, 0.0], [2.0, 1.0]])), [half])
        assert maker_of(bob, scaled).operands[0].is_whole is is_whole


def test_rows_that_the_sender_chose_are_not_whole(bob: Any, table: Any) -> None:
    inputs, _ = take_columns(table)

    (scaled,) = arrange_there(Scale(torch.tensor([[0.0, 0.0], [2.0, 1.0]])), [inputs[:10]])

    assert not maker_of(bob, scaled).operands[0].is_whole


def test_a_result_that_was_changed_is_no_arrangement(bob: Any, table: Any) -> None:
    inputs, _ = take_columns(table)

    inputs.child._location.tell(Run("torch", "torch.Tensor.add_", (inputs.child, 1), {}, new_id()))

    assert inputs.shape == (ROWS, 2)
    assert maker_of(bob, inputs) is None


def test_the_digest_depends_on_every_step_and_constant(bob: Any, table: Any) -> None:
    def program(pointer: Any) -> str:
        return str(dict(maker_of(bob, pointer).options)["program"])

    inputs, targets = take_columns(table)
    constants = torch.tensor([[0.0, 0.0], [2.0, 1.0]])
    found = [
        inputs, targets, *take_columns(table, "age"), *take_columns(table, one_hot=True)[:1],
        *arrange_there(Scale(constants), [inputs]), *arrange_there(Scale(constants * 2), [inputs]),
        *arrange_there(Half(0.25, False), [inputs, targets]), *arrange_there(Half(0.25, True), [inputs, targets]),
        *arrange_there(Scale(constants), arrange_there(Half(0.25, False), [inputs])),
    ]  # fmt: skip

    assert len(set(map(program, found))) == len(found)
    assert program(take_columns(table)[0]) == program(inputs)


def test_workers_agree_on_the_digest(bob: Any, alice: Any, table: Any) -> None:
    alice.load_data([make_table(rows=13)])

    makers = [
        maker_of(w, arrange_there(Half(0.25, True), take_columns(w.search("#patients")[0]))[0]) for w in (bob, alice)
    ]

    assert makers[0].options[0] == makers[1].options[0]


def test_public_data_has_no_maker(bob: Any) -> None:
    bob.load_data([make_table(private=False)])

    assert maker_of(bob, take_columns(bob.search("#patients")[0])[0]) is None


# --- bad input


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"step": "rows"}, "there is no such step"),
        ({"settings": {"inputs": ("age",), "label": "ill"}}, "one of its settings is missing"),
        ({"settings": {"inputs": (), "label": "ill", "dtype": "float32"}}, "its inputs has a wrong type or value"),
        ({"settings": {"inputs": ("age",), "label": 3, "dtype": "float32"}}, "its inputs has a wrong type or value"),
        ({"settings": {"inputs": ("age",), "label": "ill", "dtype": "int64"}}, "its dtype has a wrong type or value"),
        ({"settings": {"inputs": ("age",), "label": "ill", "dtype": "float32", "rows": 3}}, "is unknown here"),
        ({"settings": {"inputs": ("age",), "label": "ill", "dtype": "float32", "constants": 3}}, "is unknown here"),
        ({"constants": torch.ones(1, 3)}, "its constants has a wrong type or value"),
        ({"step": "scale", "settings": {}}, "its constants has a wrong type or value"),
        ({"step": "scale", "settings": {}, "constants": torch.zeros(2, 3)}, "its constants has a wrong type or value"),
        ({"step": "scale", "settings": {}, "constants": torch.ones(2, 4)}, "its constants has a wrong type or value"),
        ({"step": "fill", "settings": {}, "constants": torch.full((1, 3), math.inf)}, "its constants has a wrong"),
        ({"step": "half", "settings": {"test_size": 1.5, "is_test": True}}, "its test_size has a wrong type or value"),
        ({"step": "half", "settings": {"test_size": 0.001, "is_test": True}}, "one half is empty"),
        ({"step": "half", "settings": {"test_size": 0.5, "is_test": 1}}, "its is_test has a wrong type or value"),
        ({"data": ()}, "its data is not stored there"),
        ({"data": (torch.ones(3, 3),)}, "its data is not stored there"),
    ],
)
def test_a_wrong_message_is_refused(bob: Any, table: Any, changes: Any, error: str) -> None:
    settings = {"inputs": ("age",), "label": "ill", "dtype": "float32"}
    message = Arrange((table.child,), "columns", settings, new_id())

    with pytest.raises(fl.FederatedError, match=error):
        table.child._location.ask(replace(message, **changes))


def test_private_constants_are_refused(bob: Any, table: Any) -> None:
    message = Arrange((table.child,), "scale", {}, new_id(), table.child)

    with pytest.raises(fl.FederatedError, match="its constants has a wrong type or value"):
        table.child._location.ask(message)


def test_a_table_without_names_and_a_wrong_column_are_refused(bob: Any, table: Any) -> None:
    bob.load_data([torch.ones(3, 3).tag("#plain")])

    with pytest.raises(ColumnError, match="this object of worker 'bob' has no column names"):
        take_columns(bob.search("#plain")[0])
    with pytest.raises(ColumnError, match="cannot select column 'aeg': there is none; did you mean 'age'"):
        take_columns(table, "aeg")


def test_a_hidden_table_is_not_there(hook: Any) -> None:
    worker = sy.VirtualWorker(hook, id="hidden", policy="nothing")
    worker.load_data([make_table(private=False)])
    (found,) = [entry.id for entry in worker.object_store.entries()]
    location = hook.local_worker.location_of(worker)
    settings = {"inputs": ("age",), "label": "ill", "dtype": "float32"}

    texts = []
    for id, names in ((found, ("age",)), (found, ("aeg",)), (5, ("age",))):
        pointer = sy.PointerTensor(location=location, id_at_location=id, owner=hook.local_worker)
        with pytest.raises(ObjectNotFoundError) as caught:
            location.ask(Arrange((pointer,), "columns", {**settings, "inputs": names}, new_id()))
        texts.append(str(caught.value).replace(str(id), "5"))

    assert len(set(texts)) == 1
