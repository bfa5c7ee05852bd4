"""Operations accept tensors by keyword, and make the same changes as locally if they fail."""

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


def seeded(call: Any, args: Any, kwargs: Any) -> Any:
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
    expected = seeded(op.func, *plain)
    found = seeded(op.func, *twins)
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
                if isinstance(seeded(op.func, (), map_tensors(SURFACE, SURFACE.copy, {**named, **kwargs})), Raised):
                    continue
                verdict = differs(bob, op, (), {**named, **kwargs})
                (wrong if verdict else compared if verdict is False else set()).add(op.name)

    assert wrong == set()
    assert len(compared) > 400


def test_a_failed_in_place_operation_makes_the_same_changes_as_locally(bob: Any) -> None:
    tried, wrong = set(), set()
    odd = torch.zeros(7, 11, 13)
    for op in SURFACE.ops:
        if not op.inplace:
            continue
        for args, kwargs in calls(op):
            for broken in ((args, {**kwargs, "nonsense": 1}), ((args[0], odd, *args[2:]), kwargs), (args[:1], {})):
                if isinstance(seeded(op.func, *map_tensors(SURFACE, SURFACE.copy, broken)), Raised):
                    tried.add(op.name)
                    if differs(bob, op, *broken):
                        wrong.add(op.name)

    assert wrong == set()
    assert len(tried) > 200
