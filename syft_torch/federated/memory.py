"""The memory that a computation needs, found on the meta device, where nothing is allocated."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from contextlib import suppress

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from syft_core.hook.rules import leaves, map_leaves
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_torch.federated.losses import Loss


def measure_peak(function: Function, args: Args) -> int:
    """Return the peak memory in bytes of a function, without its arguments; 0 if that depends on values."""
    shadows = map_leaves(_to_meta, args)
    peak = _Peak(leaf.untyped_storage() for leaf in leaves(shadows) if isinstance(leaf, torch.Tensor))
    try:
        with peak:
            function(*shadows)
    except Exception:  # noqa: BLE001  # on the meta device torch may raise any error; the function itself says why
        return peak.most
    return peak.most


def uses_small_floats(loss: Loss) -> bool:
    """Return whether a step of a loss computes with floats of less than 32 bits; found by trial.

    The trial is without autocast, which does not apply on the meta device.
    """
    if any(step.modes is not None and step.modes.split()[-1] != "None" for step in loss.program.routines[0].steps):
        return True
    forms = loss.program.inputs
    length = next(iter(loss.lengths))
    lead = len(forms) - loss.batch
    shapes = [
        tuple(known.shape) if place < lead else (2 if length < 0 else length, *known.shape[1:])
        for place, known in enumerate(forms)
    ]
    found = _Dtypes()
    with found, torch.no_grad(), suppress(Exception):  # The steps before an error count too.
        loss.rehearse([torch.empty(s, dtype=f.dtype, device="meta") for s, f in zip(shapes, forms, strict=True)])
    return any(dtype.is_floating_point and dtype.itemsize < torch.float32.itemsize for dtype in found.dtypes)


class _Dtypes(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed
    """Collects the types of all tensors that operations get or return."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(
        self, func: Function, types: Nested, args: Args = (), kwargs: Kwargs | None = None
    ) -> Nested:
        result = func(*args, **(kwargs or {}))
        self.dtypes |= {leaf.dtype for leaf in leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)}
        return result


def _to_meta(leaf: Nested) -> Nested:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")


class _Peak(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed
    """Adds up the memory that operations allocate and that is still in use."""

    def __init__(self, given: Iterable[torch.UntypedStorage]) -> None:
        super().__init__()
        self.most = self._now = 0
        self._sizes = {storage._cdata: 0 for storage in given}
        """The bytes that count of each storage: none for given ones."""

    def __torch_dispatch__(
        self, func: Function, types: Nested, args: Args = (), kwargs: Kwargs | None = None
    ) -> Nested:
        result = func(*args, **(kwargs or {}))
        for leaf in leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._add(leaf)
        return result

    def _add(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._sizes:
            self._sizes[key] = storage.nbytes()
            self._now += self._sizes[key]
            self.most = max(self.most, self._now)
            weakref.finalize(storage, self._remove, key).atexit = False

    def _remove(self, key: int) -> None:
        self._now -= self._sizes.pop(key)
