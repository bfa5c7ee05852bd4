"""Placing: make new tensors on a worker, where the data is that they will meet.

``torch.zeros(n)`` makes a tensor here. Inside of the forward of a module that is on a worker, and in ``with bob:``, a
mode of torch's own kind sends the call there instead. Nothing changes for other code, which no mode watches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from syft_core.hook.attributes import FrameworkAttributes, words
from syft_core.hook.dispatch import dispatch
from syft_core.hook.forms import Form, form
from syft_core.hook.rules import leaves
from syft_core.location import Location
from syft_core.values import Args, Function, Nested
from syft_core.workers.remote import RemoteFramework
from syft_torch.wrapper import Wrapper

_get_mode = torch._C._get_function_stack_at
_count_modes = torch._C._len_torch_function_stack

MADE_HERE = {
    getattr(torch, name)
    for name in words(
        "as_tensor asarray from_numpy frombuffer bartlett_window blackman_window hamming_window hann_window "
        "kaiser_window"
    )
}
"""Functions that make a tensor of data that is here, or that no worker is asked for: what they make is sent."""


class Placing(TorchFunctionMode):  # type: ignore[misc]  # torch's types are Any here
    """Makes tensors at ``location`` that would be made here.

    A tensor without dimensions is a number, and stays here: it goes along with every call, and programs read it.
    """

    def __init__(self, framework: FrameworkAttributes, location: Location) -> None:
        super().__init__()
        self.location = location
        self._framework = framework
        self._makers = {op.func: op for op in framework.creators.values()}
        self._remote = RemoteFramework(location, location.client, framework)

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Mapping[str, Any] | None = None
    ) -> Nested:
        """Make a new tensor there; run everything else as it is."""
        named = dict(kwargs) if kwargs else {}
        maker = self._makers.get(func)
        if (maker is None and func not in MADE_HERE) or "out" in named or str(named.get("device")) == "meta":
            return func(*args, **named)
        given = [leaf for leaf in leaves((args, named)) if isinstance(leaf, torch.Tensor)]
        if any(isinstance(leaf, Wrapper) for leaf in given):
            return func(*args, **named) if maker is None else dispatch(maker, args, named)
        if maker is None or given or named.get("generator") is not None:
            made = func(*args, **named)
            return made.send(self.location) if made.dim() else made
        shadow = func(*args, **{**named, "device": "meta"})
        if not shadow.dim():
            return func(*args, **named)
        return self._remote.create(maker, args, named, _form_on(named.get("device"), self._framework.form_of(shadow)))


def _form_on(device: Any, shadow: Form | None) -> Form | None:
    """Return the form of a new tensor on a device, if that is certain: only the worker knows its default."""
    place = None if device is None else torch.device(device)
    if place is None or shadow is None or (place.type != "cpu" and place.index is None):
        return None
    return form(shadow.shape, shadow.strides, shadow.dtype, place, shadow.requires_grad)


def is_placing_at(location: Location) -> bool:
    """Return whether new tensors are made at ``location`` already."""
    count = _count_modes()
    mode = _get_mode(count - 1) if count else None
    return type(mode) is Placing and mode.location is location
