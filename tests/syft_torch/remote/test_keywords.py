"""Operations accept tensors by keyword, and change nothing if they fail."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="torch's own samples need it")

from syft_core.exceptions import OperationNotAllowedError, ValueRefusedError  # noqa: E402
from syft_core.hook.attributes import Op  # noqa: E402
from tests.surface.checks import Raised, attempt, map_tensors, tensors  # noqa: E402
from tests.surface.torch_surface import TorchSurface  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

SURFACE = TorchSurface()
REFUSED = (OperationNotAllowedError, ValueRefusedError)


def call_seeded(call: Any, args: Any, kwargs: Any) -> Any:
    torch.default_generator.manual_seed(3)
    return attempt(call, args, kwargs)


def calls(op: Op) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield the arguments of samples with plain tensors that can be sent."""
    for case in SURFACE.cases(op)[:3]:
        given = list(tensors(SURFACE, (case.args, case.kwargs)))
        common = all(t.layout is torch.strided and not (t.is_quantized or t.is_nested) for t in given)
        if case.call is op.func and given and common and not op.facts.uninitialized and not case.form_only:
            yield case.args, case.kwargs


def by_keyword(op: Op, args: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """Yield the positional arguments by the names that torch may use."""
    try:
        yield dict(zip(inspect.signature(op.func).parameters, args, strict=False))
    except (TypeError, ValueError):
        packet = getattr(torch.ops.aten, op.attr, None)
        for overload in packet.overloads() if packet is not None else ():
            names = [argument.name for argument in getattr(packet, overload)._schema.arguments]
            if len(names) >= len(args):
                yield {"input" if name == "self" else name: arg for name, arg in zip(names, args, strict=False)}


def differs(bob: Any, op: Op, args: Any, kwargs: Any) -> bool | None:
    """Compare the results and changed arguments of a call locally and on a worker; None if it cannot run."""
    plain = map_tensors(SURFACE, SURFACE.copy, (args, kwargs))
    twins = map_tensors(SURFACE, lambda tensor: tensor.send(bob), plain)
    expected = call_seeded(op.func, *plain)
    found = call_seeded(op.func, *twins)
    if isinstance(found, Raised) and issubclass(found.kind, REFUSED):
        plain, expected = (args, kwargs), None
    elif isinstance(expected, Raised) != isinstance(found, Raised):
        return True
    pairs = (
        [(plain, twins)] if expected is None or isinstance(expected, Raised) else [(plain, twins), (expected, found)]
    )
    for home, there in pairs:
        for one, other in zip(tensors(SURFACE, home), tensors(SURFACE, there), strict=True):
            if not torch.allclose(one.detach(), other.copy().get().detach(), equal_nan=True):
                return True
    return None if expected is None or isinstance(expected, Raised) else False


def test_every_function_takes_its_first_tensor_by_keyword(bob: Any) -> None:
    compared, wrong = set(), set()
    for op in SURFACE.ops:
        if op.spelling != "function" or op.differentiates:
            continue
        for args, kwargs in calls(op):
            for named in by_keyword(op, args):
                if isinstance(
                    call_seeded(op.func, (), map_tensors(SURFACE, SURFACE.copy, {**named, **kwargs})), Raised
                ):
                    continue
                verdict = differs(bob, op, (), {**named, **kwargs})
                (wrong if verdict else compared if verdict is False else set()).add(op.name)

    assert wrong == set()
    assert len(compared) > 400


def changes(before: Any, after: Any) -> bool:
    """Return whether a tensor of one structure differs from that of the other."""
    return any(
        one.shape != other.shape or not torch.allclose(one.detach(), other.detach(), equal_nan=True)
        for one, other in zip(tensors(SURFACE, before), tensors(SURFACE, after), strict=True)
    )


def point_outside(tensor: Any) -> Any:
    """Return an index whose last element is out of range."""
    if tensor.dtype is not torch.int64 or not tensor.numel():
        return tensor
    outside = tensor.clone()
    outside.view(-1)[-1] = 1000
    return outside


CHANGED_BY_TORCH = {
    *(
        f"torch.Tensor.{name}_"
        for name in ("index_copy", "index_put", "put", "scatter", "scatter_add", "scatter_reduce")
    ),
    "torch.index_put_",
}
"""Operations that write some elements before they find an index that is out of range, locally too.

Other releases of torch may check the indices first.
"""


def test_an_in_place_operation_that_fails_changes_nothing(bob: Any) -> None:
    tried, changed_here, changed_there, wrong = set(), set(), set(), set()
    odd = torch.zeros(7, 11, 13)
    for op in SURFACE.ops:
        if not op.inplace:
            continue
        for args, kwargs in calls(op):
            far = map_tensors(SURFACE, point_outside, args[1:])
            for broken in (
                (args, {**kwargs, "nonsense": 1}),
                ((args[0], odd, *args[2:]), kwargs),
                (args[:1], {}),
                ((args[0], *far), kwargs),
            ):
                plain = map_tensors(SURFACE, SURFACE.copy, broken)
                if not isinstance(call_seeded(op.func, *plain), Raised):
                    continue
                tried.add(op.name)
                there = map_tensors(SURFACE, lambda tensor: SURFACE.copy(tensor).send(bob), broken)
                if not isinstance(call_seeded(op.func, *there), Raised):
                    wrong.add(op.name)
                fetched = map_tensors(SURFACE, lambda tensor: tensor.get(), there)
                if changes(broken, plain):
                    changed_here.add(op.name)
                if changes(broken, fetched):
                    changed_there.add(op.name)

    assert wrong == set()
    assert changed_there == changed_here
    assert changed_there <= CHANGED_BY_TORCH
    assert len(tried) > 200
