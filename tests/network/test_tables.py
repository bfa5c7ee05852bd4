"""Tables of a worker: their columns, their rules for cells, their mocks, and what nobody learns of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_core.exceptions import (  # noqa: E402
    ColumnError,
    ConfigurationError,
    GetNotPermittedError,
    ObjectNotFoundError,
    SerdeError,
)
from syft_core.messages import AskSchema, Lease, Store  # noqa: E402
from syft_core.network.client import WebsocketClientWorker  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.plugins.manager import load_backend  # noqa: E402
from syft_core.serde import codecs  # noqa: E402
from syft_core.tensors.schema import Column, Schema  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_worker.checks import find_problems  # noqa: E402
from syft_worker.config import EXAMPLE, WorkerConfig, read_config  # noqa: E402
from syft_worker.data import DataSource, load  # noqa: E402
from syft_worker.storage import Storage  # noqa: E402
from syft_worker.views import _objects  # noqa: E402

from ..syft_worker.patients import CELLS, SCHEMA  # noqa: E402
from .served import serve  # noqa: E402
from .supervised import supervise  # noqa: E402

COLUMNS = [
    Column("age", "integer", "years"),
    Column("sex", "category", categories=("m", "f", "x")),
    Column("admitted", "date"),
    Column("bmi", "real", "kg/m2", nullable=True),
    Column("ill", "integer"),
]
EVE = Peer("phone@eve", "eve")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    path.write_text(CELLS)
    return path


def source(file: Path, **options: Any) -> DataSource:
    return DataSource.from_table({"file": str(file), "tags": ["#patients"], "schema": SCHEMA, **options})


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def bob(any_hook: Any, request: pytest.FixtureRequest) -> VirtualWorker:
    return VirtualWorker(any_hook, id="bob", serialize=request.param)


def find(worker: Any) -> Any:
    (found,) = worker.search("#patients")
    return found


# --- columns


def test_a_worker_keeps_the_names_and_types_of_columns(bob: VirtualWorker, file: Path, any_hook: Any) -> None:
    bob.load_data(load([source(file)], any_hook))

    found = find(bob)

    assert found.columns == ["age", "sex", "admitted", "bmi", "ill"]
    assert list(found.schema.columns) == COLUMNS
    assert "age       integer   years" in str(found.schema)


def test_columns_are_selected_by_name_on_the_worker(bob: VirtualWorker, file: Path, any_hook: Any) -> None:
    bob.load_data(load([source(file)], any_hook))
    found = find(bob)

    ages, chosen = found["age"], found[["ill", "sex"]]

    assert chosen.columns == ["ill", "sex"]
    assert chosen["ill"].get().tolist() == [1, 0, 1]
    assert ages.get().tolist() == [63, 41, 50]
    assert chosen.get().tolist() == [[1, 1], [0, 0], [1, 1]]


def test_a_column_of_a_private_table_is_private(bob: VirtualWorker, file: Path, any_hook: Any) -> None:
    bob.load_data(load([source(file, private=["ana"])], any_hook))

    for part in (find(bob)["age"], find(bob)[["age", "sex"]], find(bob)["age"].sum()):
        with pytest.raises(GetNotPermittedError):
            part.get()


def test_a_wrong_name_is_refused_before_anything_is_sent(bob: VirtualWorker, file: Path, any_hook: Any) -> None:
    bob.load_data(load([source(file)], any_hook))
    found = find(bob)

    with pytest.raises(ColumnError, match="cannot select column 'aeg': there is none; did you mean 'age'?"):
        found["aeg"]
    with pytest.raises(ColumnError, match="this object of worker 'bob' has no column names"):
        (found + 1)["age"]
    with pytest.raises(TypeError, match="expected a string, got int"):
        found[["age", 1]]


def test_a_table_in_memory_gets_names_from_its_owner(bob: VirtualWorker, any_hook: Any) -> None:
    table = any_hook.make_taggable(any_hook.create_tensor([[1.0, 2.0], [3.0, 4.0]]))
    bob.load_data([table.name_columns("a", Column("b", unit="mm")).private_tensor(["eve"]).tag("#patients")])

    assert find(bob).columns == ["a", "b"]
    assert find(bob)["b"].sum().get().child.child.tolist() == 6.0
    with pytest.raises(ValueError, match=r"cannot name 1 columns: the shape is \(2, 2\)"):
        table.name_columns("a")
    with pytest.raises(ColumnError, match="two of its columns have the same name"):
        table.name_columns("a", "a")


def test_columns_and_mocks_are_there_again_after_a_restart(tmp_path: Path, file: Path, any_hook: Any) -> None:
    def start() -> tuple[VirtualWorker, Storage]:
        worker = VirtualWorker(any_hook, id="bob", serialize=True)
        return worker, Storage(tmp_path / "store", worker, load([source(file, mock="draw")], any_hook))

    worker, storage = start()
    before = find(worker).mock.copy().get().tolist()
    value = worker.get_obj(find(worker).id_at_location)
    value[0, 0] = 99  # The owner changes the table, so the store has it.
    storage._noted[find(worker).id_at_location] = None
    storage.close()
    any_hook.local_worker.remove_worker_from_registry("bob")
    worker, storage = start()

    assert list(find(worker).schema.columns) == COLUMNS
    assert find(worker)["age"].get().tolist() == [99, 41, 50]
    assert np.array_equal(find(worker).mock.get().tolist(), before, equal_nan=True)
    storage.close()


# --- mocks


def test_everybody_may_fetch_a_mock_of_private_data(bob: VirtualWorker, file: Path, any_hook: Any) -> None:
    bob.load_data(load([source(file, private=["ana"], mock="draw", mock_rows=50)], any_hook))
    found = find(bob)

    mock = found.mock

    assert mock.columns == found.columns
    assert mock.dtype == found.dtype
    assert mock["age"].shape == (50,)
    values = mock.get()
    assert tuple(values.shape) == (50, 5)
    assert set(values[:, 1].tolist()) == {0, 1, 2}
    assert all(18 <= age <= 100 for age in values[:, 0].tolist())
    assert any(map(math.isnan, values[:, 3].tolist()))
    with pytest.raises(GetNotPermittedError):
        found.get()


def test_a_mock_of_the_owner_must_have_the_same_form(tmp_path: Path, file: Path, any_hook: Any) -> None:
    (tmp_path / "mock.csv").write_text("age,ill\n30,0\n31,1\n")
    (tmp_path / "real.csv").write_text("age,ill\n63,1\n41,0\n50,1\n")
    (tmp_path / "float.csv").write_text("age,ill\n30.5,0\n")
    (tmp_path / "other.csv").write_text("ill,age\n0,30\n")
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    np.save(tmp_path / "b.npy", np.zeros((9, 2)))
    np.save(tmp_path / "c.npy", np.zeros((9, 3)))

    def load_with(name: str, mock: str) -> list[Any]:
        return load([DataSource.from_table({"file": name, "mock": mock}, tmp_path)], any_hook)

    assert load_with("real.csv", "mock.csv")[1].tolist() == [[30, 0], [31, 1]]
    assert tuple(load_with("a.npy", "b.npy")[1].shape) == (9, 2)
    for real, mock, message in (
        ("real.csv", "float.csv", "its column 'age' has the type real, and that of the data has the type integer"),
        ("real.csv", "other.csv", "it has other columns"),
        ("a.npy", "c.npy", "it has another form"),
        ("a.npy", "draw", "only tables can be drawn"),
        ("a.npy", "none.npy", "No such file"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            load_with(real, mock)


def test_a_table_of_a_loader_has_a_schema_and_a_mock(
    tmp_path: Path, torch_hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_tables.py").write_text(
        "import torch\ndef load(): return torch.ones(3, 2).name_columns('a', 'b')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    bob = VirtualWorker(torch_hook, id="bob")
    table = {"loader": "own_tables:load", "tags": ["#patients"], "private": ["ana"], "mock": "draw"}

    bob.load_data(load([DataSource.from_table(table)], torch_hook))

    assert find(bob).columns == find(bob).mock.columns == ["a", "b"]


def test_a_check_finds_a_mock_that_is_missing(tmp_path: Path, file: Path) -> None:
    config = WorkerConfig(data=(source(file, mock=str(tmp_path / "none.csv")), source(file, mock="draw")))

    assert [problem for problem in find_problems(config) if "none.csv: there is no such file" in problem]
    assert len(find_problems(config)) == 1


def test_fields_of_an_array_are_still_found_by_name() -> None:
    with load_backend("numpy")(np) as hook:
        bob = VirtualWorker(hook, id="bob")
        pointer = hook.array(np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])).send(bob)

        assert pointer["a"].get().tolist() == [0.0, 0.0, 0.0]


def test_data_without_a_mock_says_so(bob: VirtualWorker, file: Path, any_hook: Any) -> None:
    bob.load_data(load([source(file)], any_hook))

    with pytest.raises(ColumnError, match="cannot use a mock: object .* of worker 'bob' has none; ask its owner"):
        find(bob).mock  # noqa: B018  # it raises


# --- attacks


@pytest.mark.parametrize("policy", ["only_published", "nothing"])
def test_a_hidden_table_tells_nothing_of_its_columns(any_hook: Any, file: Path, policy: str) -> None:
    bob = VirtualWorker(any_hook, id="bob", policy=policy)
    table, mock = load([source(file, mock="draw")], any_hook)
    bob.load_data([table, mock])
    if policy == "only_published":
        for each in (table, mock):
            bob.object_store.entry(each.id).published = False

    answers = []
    for message in (AskSchema(table.id), AskSchema(5), AskSchema(mock.id), Lease((mock.id,))):
        with pytest.raises(ObjectNotFoundError) as caught:
            bob.handle(message, EVE)
        answers.append(str(caught.value).replace(str(table.id), "5").replace(str(mock.id), "5"))

    assert len(set(answers)) == 1


def test_a_hidden_mock_is_not_named(any_hook: Any, file: Path) -> None:
    bob = VirtualWorker(any_hook, id="bob", policy="only_published")
    table, mock = load([source(file, mock="draw")], any_hook)
    bob.load_data([table, mock])
    assert bob.handle(AskSchema(table.id), EVE).mock == mock.id

    bob.object_store.entry(mock.id).published = False

    assert bob.handle(AskSchema(table.id), EVE).mock is None


def test_an_object_of_a_peer_is_never_a_mock(any_hook: Any, file: Path) -> None:
    bob = VirtualWorker(any_hook, id="bob")
    table, mock = load([source(file, mock="draw")], any_hook)
    bob.load_data([table])

    forged = any_hook.create_tensor([[1.0] * 5])
    bob.handle(Store(mock.id, forged, publish=True), EVE)

    assert bob.handle(AskSchema(table.id), Peer("me", "ana")).mock is None


def test_categories_that_are_not_declared_are_nowhere(any_hook: Any, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("age,sex\n30,secretly\n31,other\n")
    bob = VirtualWorker(any_hook, id="bob", serialize=True)
    options = {"file": str(tmp_path / "p.csv"), "tags": ["#patients"], "columns": ["age"], "mock": "draw"}
    bob.load_data(load([DataSource.from_table(options)], any_hook))

    seen = [repr(bob.handle(AskSchema(entry.id), EVE)) for entry in bob.object_store.entries()]

    assert all("sex" not in text and "secretly" not in text for text in seen)


def test_names_with_html_are_text_on_the_owners_page(any_hook: Any, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("<script>alert(1)</script>,b\n1,2\n")
    bob = VirtualWorker(any_hook, id="bob")
    bob.load_data(load([DataSource(tmp_path / "p.csv")], any_hook))

    page = str(_objects(bob.object_store.entries(), {}))

    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in bob.search("#p")[0].schema._repr_html_()


@pytest.mark.parametrize(
    "columns",
    [
        (("a", "real", None, None, False), ("a", "real", None, None, False)),
        (("a", "code", None, None, False),),
        (("a", "real", 3, None, False),),
        (("a", "real", None, ("b", 3), False),),
        (("a" * 2000, "real", None, None, False),),
        (("a", "real", None, None),),
        ("a",),
        "a",
    ],
)
def test_a_forged_schema_is_refused(columns: Any) -> None:
    with pytest.raises(SerdeError):
        codecs.by_code[345].detail((None, columns), None)


def test_a_changed_form_has_no_columns(any_hook: Any, file: Path) -> None:
    bob = VirtualWorker(any_hook, id="bob")
    (table,) = load([source(file)], any_hook)
    bob.load_data([table])

    bob.object_store.entry(table.id).schema = Schema((Column("a"),))

    assert find(bob).columns == []


# --- on a network


@pytest.fixture
def served(torch_hook: Any, file: Path) -> Iterator[WebsocketClientWorker]:
    with serve(torch_hook) as served:
        served.worker.load_data(load([source(file, private=["noor"], mock="draw")], torch_hook))
        yield served.connect()


def test_a_client_on_the_network_sees_columns_and_fetches_the_mock(served: WebsocketClientWorker) -> None:
    found = find(served)

    assert list(found.schema.columns) == COLUMNS
    assert found["age"].shape == (3,)
    assert found.mock[["age", "sex"]].get().shape == (100, 2)
    with pytest.raises(GetNotPermittedError):
        found["age"].get()


def test_tables_on_the_network_are_scaled_and_split(torch_hook: Any, file: Path) -> None:
    fl = pytest.importorskip("syft_torch.federated")
    with serve(torch_hook, "north") as north, serve(torch_hook, "south") as south:
        for served in (north, south):
            served.worker.load_data(load([source(file, private=["ana"])], torch_hook))
        places = [north.connect(), south.connect()]

        data = fl.find("#patients", columns=["age", "bmi"], label="ill", missing="mean", workers=places)
        train, test = fl.train_test_split(data, test_size=0.4)
        scaling = fl.Scaling.fit(train)

        assert (len(train), len(test)) == (4, 2)
        assert scaling.apply(test)["south"].data.shape == (1, 2)
        assert scaling.mean.isfinite().all()


def test_a_served_worker_has_its_tables_again_after_it_was_started_again(
    torch_hook: Any, tmp_path: Path, file: Path
) -> None:
    (tmp_path / "worker.toml").write_text(
        'id = "north"\nstore = "store"\n[[data]]\nfile = "patients.csv"\ntags = ["#patients"]\nprivate = ["ana"]\n'
        'mock = "draw"\nmock_rows = 5\nmissing = "drop"\n[data.schema.sex]\ncategories = ["m", "f", "x"]\n'
        '[data.schema.admitted]\ntype = "date"\n'
    )
    seen = []
    for _ in range(2):
        with supervise(str(tmp_path / "worker.toml")) as worker:
            client = worker.connect(torch_hook, worker.read_token())
            found = find(client)
            seen.append((found.schema, found["age"].shape, found.mock.get().tolist()))
            with pytest.raises(GetNotPermittedError):
                found["age"].sum().get()
            client.close()
            torch_hook.local_worker._known_workers.pop("north", None)

    assert seen[0] == seen[1]
    assert [column.type for column in seen[0][0].columns] == ["integer", "category", "date", "real", "integer"]
    assert tuple(seen[0][1]) == (2,)


def test_the_example_file_explains_schemas_and_mocks() -> None:
    text = EXAMPLE.read_text()

    assert all(word in text for word in ("schema", "mock", "missing", "categories", "unit"))
    assert isinstance(read_config(EXAMPLE), WorkerConfig)
