"""What everybody may see does not depend on what only some may see, whatever is computed with both.

Programs of random operations run twice, with different secrets: their public objects, the forms of all objects, and the
errors must be the same. ``SYFT_EXAMPLES`` sets the number of programs: 200 by default.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import syft_core as sy
from syft_core.hook.chain import plain_end
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.rules import leaves
from syft_numpy.hook import NumpyHook
from syft_torch.hook import TorchHook

from ..surface.checks import map_tensors
from . import kinds

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

EXAMPLES = int(os.environ.get("SYFT_EXAMPLES", "200"))
STEPS = 12
LARGEST = 400
"""How many elements the tensors of a call may have."""
MOST_OBJECTS = 40
EXTREMES = (float("nan"), float("inf"), -5.0, 0.0, 1e30, -0.5, 1.0)
HOOKS: dict[str, Callable[[], FrameworkHook]] = {"torch": lambda: TorchHook(torch), "numpy": lambda: NumpyHook(np)}
KINDS = {"torch": kinds.OF_TORCH, "numpy": kinds.OF_NUMPY}


def _set_part(x: Any, secret: Any) -> None:
    x[...] = secret


def _set_data(x: Any, secret: Any) -> None:
    x.data = secret


def _set_gradient(x: Any, secret: Any) -> None:
    x.grad = secret


def _differentiate(x: Any, secret: Any) -> None:
    (x * secret).sum().backward()


WRITES: dict[str, list[Callable[[Any, Any], Any]]] = {
    "torch": [
        _set_part,
        _set_data,
        _set_gradient,
        _differentiate,
        lambda x, secret: x.copy_(secret),
        lambda x, secret: x.data.add_(secret),
        lambda x, secret: x.detach().mul_(secret),
        lambda x, secret: torch.add(secret, 1, out=x),
        lambda x, secret: torch._foreach_add_([x], [secret]),
    ],
    "numpy": [
        _set_part,
        lambda x, secret: np.copyto(x, secret),
        lambda x, secret: np.add(x, secret, out=x),
        lambda x, secret: x.__imul__(secret),
        lambda x, secret: x.sort(),
    ],
}


class Run:
    """One run of a random program, on a worker of its own."""

    def __init__(self, surface: Any, hook: Any, calls: list[Any], seed: int, secrets: int) -> None:
        self.surface, self.hook, self.calls, self.chance = surface, hook, calls, random.Random(seed)
        self.secrets, self.extreme = secrets, EXTREMES[seed % len(EXTREMES)]
        self.worker = sy.VirtualWorker(hook, id=f"bob {seed} {secrets}", auto_add=False)
        self.objects: list[Any] = []
        """Pointers to everything that the program has sent or computed."""
        self.errors: list[str] = []
        torch.manual_seed(seed)
        np.random.seed(seed)  # operations draw from it

    def run(self) -> Any:
        for _ in range(self.chance.randint(4, STEPS)):
            step = self.write if self.objects and self.chance.random() < 0.4 else self.compute
            chosen = random.Random(self.chance.random())
            try:
                step(chosen)
            except Exception as error:  # noqa: BLE001  # most combinations are refused
                self.errors.append(f"{type(error).__name__}: {_hide_ids(str(error))}")
        return self.errors, [self.describe(each) for each in self.objects]

    def compute(self, chosen: random.Random) -> None:
        """Call an operation on objects of any kind."""
        case = chosen.choice(self.calls)
        args, kwargs = map_tensors(self.surface, lambda x: self.pick(chosen, x), (case.args, case.kwargs))
        for leaf in leaves(case.call(*args, **kwargs)):
            is_new = all(leaf is not known for known in self.objects)
            if hasattr(leaf, "child") and is_new and len(self.objects) < MOST_OBJECTS:
                self.objects.append(leaf)

    def write(self, chosen: random.Random) -> None:
        """Write a secret into an object."""
        pointer = chosen.choice(self.objects)
        entry = self.worker.object_store.get(pointer.child.id_at_location)
        end = None if entry is None else plain_end(entry.value)
        if end is not None:
            chosen.choice(WRITES[self.surface.name])(pointer, self.make_secret(self.surface.copy(end)))

    def pick(self, chosen: random.Random, tensor: Any) -> Any:
        if chosen.random() < 0.2:
            return self.make_secret(tensor)
        dense = [each for each in self.objects if not getattr(each, "is_nested", False)]
        alike = [each for each in dense if each.shape == tensor.shape]
        if alike and chosen.random() < 0.6:
            return chosen.choice(alike)
        kind = chosen.choice(list(KINDS[self.surface.name].values())) if chosen.random() < 0.5 else self.surface.copy
        pointer = self.own(kind(tensor)).send(self.worker)
        self.objects.append(pointer)
        return pointer

    def make_secret(self, tensor: Any) -> Any:
        """Return a pointer to a tensor of the same form that only somebody else may have."""
        values = self.surface.copy(tensor)  # Its layout is that of a copy.
        if self.secrets:
            values = self.surface.extreme_values(values, self.extreme, -3)
        tag = f"#{self.worker.object_store.added}"
        self.worker.load_data([self.own(values).private_tensor(["alice"]).tag(tag)])
        return self.worker.search(tag)[0]

    def own(self, tensor: Any) -> Any:
        return tensor if isinstance(tensor, torch.Tensor) else self.hook.make_taggable(np.array(tensor))

    def describe(self, pointer: Any) -> Any:
        entry = self.worker.object_store.get(getattr(pointer.child, "id_at_location", None))
        end = None if entry is None else plain_end(entry.value)
        if entry is None or end is None:
            return None
        shape = None if getattr(end, "is_nested", False) else tuple(end.shape)
        form = shape, str(end.dtype), entry.access
        if entry.access is not None:
            return form
        gradient = end.grad if isinstance(end, torch.Tensor) and end.is_leaf else None
        return *form, _show(end), None if gradient is None else _show(gradient)


def _show(tensor: Any) -> str:
    """Return the elements of a tensor, or the error of torch, which cannot show all that it can make."""
    try:
        return str(kinds.show(tensor))
    except RuntimeError as error:
        return str(error)


def _hide_ids(text: str) -> str:
    return re.sub(r"\d{4,}|bob \d+ \d", "…", text)


@pytest.mark.timeout(0 if EXAMPLES > 1000 else 300)
def test_what_is_public_does_not_depend_on_what_is_private(surface: Any) -> None:
    with HOOKS[surface.name]() as hook:
        hook.local_worker.user = "eve"
        calls = [case for op in surface.ops if op.tier != "off" for case in surface.cases(op)]
        calls = [case for case in calls if _is_small(surface, case)]
        shown = 0
        for seed in range(EXAMPLES):
            found, other = [Run(surface, hook, calls, seed, secrets).run() for secrets in (0, 1)]
            assert found == other, f"program {seed}"
            shown += len(found[1])

    assert shown > EXAMPLES


def _is_small(surface: Any, case: Any) -> bool:
    given = [leaf for leaf in leaves((case.args, case.kwargs)) if surface.is_tensor(leaf)]
    if any(getattr(tensor, "is_nested", False) for tensor in given):
        return False
    return bool(given) and sum([int(np.prod(tuple(tensor.shape))) for tensor in given]) <= LARGEST
