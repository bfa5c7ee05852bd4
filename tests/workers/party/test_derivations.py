"""Derivations by themselves: digests, programs, names of inputs and texts."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.workers.party.derivations import (  # noqa: E402
    ARRANGE,
    ARRANGEMENT,
    MAX_TEXT,
    WEIGHTS,
    Action,
    Data,
    Derivation,
    Maker,
    Supplied,
    make_action,
    make_program_action,
    make_unknown,
)

PROGRAM = "5f" * 32


@pytest.fixture
def rows(hook: Any) -> Data:
    return Data("scans", frozenset({"#scans"}), torch.zeros(10, 2), lambda: None)


def call(hook: Any, name: str, *args: Any, **kwargs: Any) -> Action:
    return make_action(hook.attributes.method(name), args, kwargs)


def train(*operands: Derivation, roles: tuple[str, ...], program: str = PROGRAM) -> Derivation:
    maker = Maker("train", (("program", program), ("samples", 10)), ("bob",))
    return Derivation(make_program_action(maker, roles), operands)


def test_an_argument_counts_with_its_type(hook: Any) -> None:
    tensor = torch.zeros(2)
    calls = [(tensor, 1), (tensor, 1.0), (tensor, True), (tensor, "1"), (tensor, None), (tensor, [1]), (tensor, (1,))]

    digests = {call(hook, "add", *args).digest for args in calls}

    assert len(digests) == len(calls)


def test_an_argument_without_a_lasting_form_makes_a_program_that_equals_no_other(hook: Any) -> None:
    generator = torch.Generator()

    digests = {call(hook, "bernoulli", torch.zeros(2), generator=generator).digest for _ in range(2)}

    assert len(digests) == 2


def test_data_counts_with_id_tags_and_form_but_not_with_its_values(hook: Any) -> None:
    def describe(id: str = "a", tag: str = "#x", value: Any = None) -> bytes:
        return Data(id, frozenset({tag}), torch.zeros(3) if value is None else value, lambda: None).digest

    assert describe() == describe(value=torch.ones(3))
    assert len({describe(), describe("b"), describe(tag="#y"), describe(value=torch.zeros(4))}) == 4


def test_what_was_supplied_counts_with_its_bytes_and_not_with_its_tags(hook: Any) -> None:
    tagged = torch.zeros(3).tag("#mask")

    assert Supplied(torch.zeros(3)).digest == Supplied(tagged).digest
    assert Supplied(torch.zeros(3)).digest != Supplied(torch.zeros(3).double()).digest
    assert Supplied(torch.zeros(3)).digest != Supplied(torch.tensor([0.0, 0.0, 1e-30])).digest


def test_the_program_of_a_training_on_data_is_that_which_was_recorded(rows: Data) -> None:
    first, second = (train(Supplied(torch.full((3,), n)), rows, roles=(WEIGHTS, "")) for n in (1.0, 2.0))

    assert first.find_program() == second.find_program() == PROGRAM
    assert first.digest != second.digest


def test_other_inputs_of_a_training_are_part_of_its_program_even_if_they_equal_the_weights(rows: Data) -> None:
    def describe(weights: float, correction: float) -> Derivation:
        given = Supplied(torch.full((3,), weights)), Supplied(torch.full((3,), correction))
        return train(*given, rows, roles=(WEIGHTS, "correction", ""))

    assert describe(0.0, 0.0).find_program() != PROGRAM
    assert describe(0.0, 0.0).find_program() != describe(0.0, 1.0).find_program()
    assert describe(0.0, 0.0).find_program() == describe(1.0, 0.0).find_program()
    assert describe(0.0, 0.0).find_program(["correction"]) == describe(1.0, 2.0).find_program(["correction"])


def test_data_that_was_computed_first_is_part_of_the_program_of_a_training(hook: Any, rows: Data) -> None:
    masked = Derivation(call(hook, "mul", torch.zeros(1), torch.zeros(1)), (rows, Supplied(torch.ones(10, 1))))

    assert train(Supplied(torch.zeros(3)), masked, roles=(WEIGHTS, "")).find_program() != PROGRAM


def test_all_results_of_a_training_have_its_program(rows: Data) -> None:
    found = train(Supplied(torch.zeros(3)), rows, roles=(WEIGHTS, ""))

    assert found.part(1).find_program() == found.find_program()
    assert found.part(1).digest != found.digest
    assert found.part(1).maker == found.maker


def test_inputs_are_numbered_in_the_order_of_their_use(hook: Any, rows: Data) -> None:
    one, two = Supplied(torch.ones(2)), Supplied(torch.zeros(2))
    add = call(hook, "add", torch.zeros(1), torch.zeros(1))

    found = Derivation(add, (Derivation(add, (Derivation(add, (rows, one)), two)), one))

    assert found.list_inputs() == {"input 1": one, "input 2": two}
    assert found.describe_inputs() == [f"input 1: Tensor[2] {one.hex}", f"input 2: Tensor[2] {two.hex}"]


def test_what_is_unknown_equals_nothing(rows: Data) -> None:
    assert make_unknown([rows]).digest != make_unknown([rows]).digest


def test_texts_are_short_and_without_control_characters(hook: Any) -> None:
    evil = Data("x", frozenset({"#a\x1b[2Kb"}), torch.zeros(2), lambda: None)
    add = call(hook, "add", torch.zeros(1), torch.zeros(1))
    found: Derivation = evil
    for _ in range(100):
        found = Derivation(add, (found, Supplied(torch.zeros(2))))

    assert "\x1b" not in str(evil) + str(found)
    assert len(str(found)) == MAX_TEXT


def arrange(program: str, *operands: Derivation) -> Derivation:
    maker = Maker(ARRANGE, (("program", program), ("samples", 10)), ("bob",))
    return Derivation(make_program_action(maker), operands)


def test_a_program_is_the_same_for_all_arrangements_of_whole_data_if_that_is_free(rows: Data) -> None:
    scaled, halved = arrange("aa" * 32, rows), arrange("bb" * 32, arrange("aa" * 32, rows))
    trained = [train(operand, roles=("",)) for operand in (rows, scaled, halved)]

    assert len({found.find_program() for found in trained}) == 3
    assert {found.find_program([ARRANGEMENT]) for found in trained} == {PROGRAM}


def test_a_free_arrangement_frees_no_operation_no_mask_and_no_input(hook: Any, rows: Data) -> None:
    mask = Supplied(torch.tensor([1.0, 0.0]))
    masked = Derivation(call(hook, "mul", torch.zeros(10, 2), torch.zeros(2)), (rows, mask))
    for operand in (
        masked,
        arrange("aa" * 32, masked),
        arrange("aa" * 32, mask),
        arrange("aa" * 32, make_unknown([rows])),
    ):
        found = train(operand, roles=("",))
        assert found.find_program([ARRANGEMENT]) != PROGRAM
        assert found.find_program([ARRANGEMENT]) == found.find_program()
    corrected = train(rows, mask, roles=("", "correction"))
    assert corrected.find_program([ARRANGEMENT]) != PROGRAM
