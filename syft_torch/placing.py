"""Placing: create new tensors on a worker.

``torch.zeros(n)`` creates a local tensor. In the forward of a remote module, and in ``with bob:``, a
``TorchFunctionMode`` sends the call to the worker instead. Other code is not affected.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch.distributions import Distribution
from torch.overrides import TorchFunctionMode

from syft_core.hook.attributes import FrameworkAttributes, Op, words
from syft_core.hook.caches import remember
from syft_core.hook.dispatch import dispatch
from syft_core.hook.forms import Form, form
from syft_core.hook.rules import leaves, map_leaves
from syft_core.location import Location
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_core.workers.addresses.remote import RemoteFramework
from syft_torch.parameter import PLAIN_TYPES
from syft_torch.wrapper import Wrapper

_count_modes = torch._C._len_torch_function_stack

LOCAL_CREATORS = {
    getattr(torch, name)
    for name in words(
        "as_tensor asarray from_numpy frombuffer bartlett_window blackman_window hamming_window hann_window "
        "kaiser_window normal empty_strided empty_permuted"
    )
} | {torch.fft.fftfreq, torch.fft.rfftfreq}
"""Functions that create a tensor from local data, or that workers do not offer; their result is sent."""


_ONLY_WRAPPERS = (Wrapper,)


class Placing(TorchFunctionMode):  # type: ignore[misc]  # torch has no types here
    """Creates new tensors at ``location``.

    A tensor without dimensions stays local: it can be sent with any call, and programs read it as a number. It is sent
    when it gets dimensions. A plan is an exception: there it may be the state of an optimizer.
    """

    def __init__(self, framework: FrameworkAttributes, location: Location) -> None:
        super().__init__()
        self.location = location
        self._recorder: Nested = location if location.records else None  # Of plans, which need not be loaded.
        self._framework = framework
        self._creators = _creators_by_function(framework)

    def __enter__(self) -> Placing:
        super().__enter__()
        if self._recorder is not None:
            _told.enter()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self._recorder is not None:
            _told.leave()

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Mapping[str, object] | None = None
    ) -> Nested:
        """Create new tensors at the location; run other functions unchanged."""
        if self._recorder is not None:
            _require_recorded(self._recorder, func, args, dict(kwargs or {}))
        creator = self._creators.get(func)
        if creator is None and types == _ONLY_WRAPPERS and func not in LOCAL_CREATORS and not _count_modes():
            return Wrapper.__torch_function__(func, types, args, kwargs)  # the common case, without other modes
        named = dict(kwargs) if kwargs else {}
        if (creator is None and func not in LOCAL_CREATORS) or "out" in named or str(named.get("device")) == "meta":
            made = self._call(func, args, named)
            return made.send(self.location) if _has_gained_dimensions(made, args, named) else made
        given = [leaf for leaf in leaves((args, named)) if isinstance(leaf, torch.Tensor)]
        if any(isinstance(leaf, Wrapper) for leaf in given):
            return func(*args, **named) if creator is None else dispatch(creator, args, named)
        if creator is not None and any(map(_is_foreign, leaves((args, named)))):  # Workers may not have numpy.
            if creator.attr == "tensor":
                creator = None
            else:
                args, named = map_leaves(self._convert, (args, named))
        if creator is None or given or named.get("generator") is not None:
            made = self._call(func, args, named)
            return made.send(self.location) if made.dim() or self.location.records else made
        plain = (args, named) if self._recorder is None else self._recorder.to_plain((args, named))
        shape = self._infer_form(creator, *plain)
        if not (shape is None or shape.shape or self.location.records):
            return func(*args, **named)
        remote = RemoteFramework(self.location, self.location.client, self._framework)
        return remote.create(creator, args, named, _form_on(named.get("device"), shape))

    def _call(self, func: Function, args: Args, kwargs: Kwargs) -> Nested:
        """Call a function of torch; on local tensors, with plain numbers instead of those that a plan traces."""
        if self._recorder is None or any(isinstance(leaf, Wrapper) for leaf in leaves((args, kwargs))):
            return func(*args, **kwargs)
        args, kwargs = self._recorder.read((args, kwargs))
        return func(*args, **kwargs)

    def _convert(self, leaf: object) -> Nested:
        return self._framework.convert(leaf) if _is_foreign(leaf) else leaf

    def _infer_form(self, creator: Op, args: Args, kwargs: Kwargs) -> Form | None:
        """Return the form of a new tensor, which is created on the meta device once for the same arguments."""
        values = (*args, *kwargs.values())
        call = creator, len(args), tuple(kwargs), values, tuple(map(type, values)), torch.get_default_dtype()
        try:
            found = _forms.get(call)
        except TypeError:  # An argument is not hashable.
            return self._framework.form_of(creator.func(*args, **{**kwargs, "device": "meta"}))
        if found is None:
            found = self._framework.form_of(creator.func(*args, **{**kwargs, "device": "meta"}))
            if found is not None:
                remember(_forms, call, found)
        return found


_forms: dict[tuple[object, ...], Form] = {}
"""The forms of new tensors on the meta device; of floats, shapes may depend on every digit."""


def _is_foreign(leaf: object) -> bool:
    """Return whether a value is an array or a number of another framework, such as numpy."""
    return hasattr(leaf, "__array__") and not isinstance(leaf, torch.Tensor)


def _has_gained_dimensions(made: Tensor, args: Args, kwargs: Kwargs) -> bool:
    """Return whether a result has dimensions, and was computed from local tensors without any."""
    if type(made) is not torch.Tensor or not made.dim() or made.requires_grad or made.is_meta:
        return False
    given = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    return bool(given) and all(type(leaf) is torch.Tensor and not leaf.dim() for leaf in given)


def _require_recorded(recorder: Nested, func: Function, args: Args, kwargs: Kwargs) -> None:
    """Refuse operations that a plan would not repeat: changing a local tensor, drawing from a local generator."""
    op = Wrapper.ops.by_func.get(func)
    if op is not None and any(type(target) in PLAIN_TYPES for target in op.targets(args, kwargs)):
        recorder.refuse(
            f"calls {op.attr!r} on a tensor that is not part of the plan", "pass it as an argument or in `state`"
        )
    given = leaves((args, kwargs))
    is_local = func in _DRAWS_HERE and not any(isinstance(leaf, Wrapper) for leaf in given)
    if is_local or any(isinstance(leaf, torch.Generator) for leaf in given):
        recorder.refuse(
            f"calls {func.__name__!r}, which draws random numbers here",
            "a plan would keep them for all calls; let the worker draw, without a generator, e.g. `torch.randn(3)`",
        )


_DRAWS_HERE = frozenset({torch.normal, torch.bernoulli, torch.multinomial, torch.poisson, torch.binomial})


class _Told(threading.local):
    """Tells libraries that they are recorded, as by a compiler: they then decide nothing by values.

    The modules and optimizers of torch itself would compute otherwise, for compiled kernels. Of torch, only
    distributions are told: they do not check the values of their arguments, unless a program asks for it.
    """

    _lock = threading.Lock()
    _count: ClassVar[int] = 0
    _native: ClassVar[tuple[Function, Function]]
    depth = 0

    def enter(self) -> None:
        self.depth += 1
        with self._lock:
            if _Told._count == 0:
                _Told._native = torch.compiler.is_compiling, Distribution.__init__
                torch.compiler.is_compiling, Distribution.__init__ = self._is_compiling, self._make_init(*self._native)
            _Told._count += 1

    def leave(self) -> None:
        self.depth -= 1
        with self._lock:
            _Told._count -= 1
            if _Told._count == 0:
                torch.compiler.is_compiling, Distribution.__init__ = self._native

    def _is_compiling(self) -> bool:
        is_of_torch = str(sys._getframe(1).f_globals.get("__name__", "")).partition(".")[0] == "torch"
        return self._native[0]() or (self.depth > 0 and not is_of_torch)

    def _make_init(self, _is_compiling: Function, native: Function) -> Function:
        @functools.wraps(native)
        def init(distribution: Distribution, *args: object, **kwargs: object) -> None:
            chosen = args[2] if len(args) > 2 else kwargs.get("validate_args")
            if self.depth and chosen is None:
                args, kwargs["validate_args"] = args[:2], False
            native(distribution, *args, **kwargs)

        return init


_told = _Told()


@functools.cache
def _creators_by_function(framework: FrameworkAttributes) -> dict[Function, Op]:
    return {op.func: op for op in framework.creators.values()}


def _form_on(device: object, shadow: Form | None) -> Form | None:
    """Return the form of a new tensor on a device, or None if it is not certain: the default device is the worker's."""
    place = None if device is None else torch.device(device)
    if place is None or shadow is None or (place.type != "cpu" and place.index is None):
        return None
    return form(shadow.shape, shadow.strides, shadow.dtype, place, shadow.requires_grad)
