"""Stand-ins behave like the results of the same call on other operands: form, memory, graph, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch.attributes import TorchAttributes  # noqa: E402
from syft_torch.graphs import find_saved  # noqa: E402
from syft_torch.stand_ins import make_stand_ins  # noqa: E402

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "saves operands": lambda x, y: x * y,
    "saves its result": lambda x, y: x.exp(),
    "saves something else": lambda x, y: torch.nn.functional.log_softmax(x, 0).square() + y,
    "saves nothing": lambda x, y: x + y,
    "is transposed": lambda x, y: torch.outer(x, y).t(),
    "uses one operand": lambda x, y: x.square(),
}


def make(call: Callable[[Any, Any], Any]) -> tuple[Any, Any, Any, Any]:
    """Return two operands with a result, and a stand-in for it."""
    x, y = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in "xy")
    twins = [torch.ones(2, requires_grad=True) for _ in "xy"]
    (stand_in,) = make_stand_ins([call(*twins)], list(zip(twins, (x, y), strict=True)))
    return x, y, call(x, y), stand_in


@pytest.mark.parametrize("name", CALLS)
def test_a_stand_in_has_the_form_and_the_memory_of_a_result(name: str) -> None:
    _x, _y, real, stand_in = make(CALLS[name])

    form_of = TorchAttributes(torch).form_of
    assert form_of(stand_in) is form_of(real)
    assert not stand_in.any()
    assert stand_in.untyped_storage().nbytes() == real.untyped_storage().nbytes()
    assert sorted(find_saved([stand_in]).values()) == sorted(find_saved([real]).values())


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", CALLS)
def test_the_same_operands_get_gradients_of_any_order(name: str, order: int) -> None:
    def differentiate(x: Any, y: Any, result: Any) -> Any:
        seen: list[Any] = []
        for _ in range(order):
            found = torch.autograd.grad(result.sum(), [x, y], create_graph=True, allow_unused=True)
            seen.append([None if grad is None else (grad.shape, grad.requires_grad) for grad in found])
            following = [grad for grad in found if grad is not None and grad.requires_grad]
            if not following:
                break
            result = sum(grad.sum() for grad in following)
        return seen

    x, y, real, stand_in = make(CALLS[name])
    assert differentiate(x, y, stand_in) == differentiate(x, y, real)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("change", ["operand", "result", "passed"])
def test_a_pass_fails_where_that_of_a_result_fails(name: str, change: str) -> None:
    def attempt(x: Any, result: Any) -> str:
        try:
            if change == "passed":
                result.sum().backward()
            with torch.no_grad():
                (x if change == "operand" else result.detach() if change == "result" else torch.ones(1)).add_(1)
            result.sum().backward()
        except RuntimeError as error:
            return str(TorchAttributes(torch).explain_backward(error))
        return ""

    x, _, real, _ = make(CALLS[name])
    other, _, _, stand_in = make(CALLS[name])
    assert attempt(other, stand_in) == attempt(x, real)


def test_a_stand_in_for_what_was_changed_in_place_depends_on_what_was_there() -> None:
    x = torch.ones(2, requires_grad=True)
    target = x * 1
    twin = TorchAttributes(torch).example(TorchAttributes(torch).form_of(target), 1)
    after = twin.mul_(3)

    (stand_in,) = make_stand_ins([after], [(after, target)])
    stand_in.sum().backward()

    assert x.grad.tolist() == [0.0, 0.0]


def test_without_gradients_there_is_no_graph() -> None:
    twin = torch.ones(2)

    (stand_in,) = make_stand_ins([twin * 2], [(twin, torch.ones(2))])

    assert stand_in.grad_fn is None
