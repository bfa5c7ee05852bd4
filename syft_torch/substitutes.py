"""Substitutes for the few functions of torch that bypass its protocol, or would send too many messages.

Functions that inspect tensors in C++ see wrappers without data, all on one device; their substitutes ask the wrappers.
Optimizer steps use lists for remote parameters. For plain tensors, each substitute calls torch's own function.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from syft_core.exceptions import WrapperLeakError
from syft_core.features import Later
from syft_core.hook.rules import leaves, map_leaves
from syft_core.location import Location
from syft_core.packages import FEATURES
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.revealing import reveal_copies
from syft_core.values import Function, Nested, Tensor, Traced
from syft_core.workers.party.worker import Worker
from syft_torch import versions
from syft_torch.links import make_apply, make_checkpoint
from syft_torch.numeric import NumericWrapper
from syft_torch.parameter import PLAIN_TYPES, location_of
from syft_torch.wrapper import Wrapper, call, clear_gradient, forget_gradient

_GROUP = "_group_tensors_by_device_and_dtype"
_STEPS_IN_LISTS = ("sgd", "adam", "adamw", "adagrad", "adadelta", "adamax", "rmsprop", "rprop")
"""Optimizers whose list form gives the same bits: modules of ``torch.optim``, with a function of the same name."""
_STEPS_WITH_NUMBERS = ("adam", "adamw", "adagrad", "adamax", "asgd", "nadam", "radam")
"""Optimizers that compute with the number of the step in Python."""
_GRADIENT = "grad"
_PACK, _UNPACK = Later("syft_torch.definitions:pack"), Later("syft_torch.definitions:unpack")
_NUMBERS = frozenset({bool, int, float, type(None)})
_EXACT_IN_LISTS = frozenset({torch.float32, torch.float64})
"""The dtypes for which it does; half precision is rounded differently, and complex numbers are split."""


def make_substitutes() -> Iterator[tuple[Any, str, Any]]:
    """Yield the owner, the name and the substitute of each function; some exist only in some versions of torch."""
    function = torch.autograd.Function
    yield function, "apply", make_apply(vars(function)["apply"], Wrapper)
    for compiled in (torch.jit.ScriptFunction, torch._C.ScriptMethod):
        yield compiled, "__call__", _run_source(vars(compiled)["__call__"])
    checkpoint, name = versions.find_checkpoint_generator()
    yield checkpoint, name, make_checkpoint(getattr(checkpoint, name), Wrapper)
    yield from versions.make_substitutes(Wrapper)
    script = torch.jit._recursive
    yield script, "create_script_module", _refuse_remote_modules(script.create_script_module)
    yield torch.nn.Module, "to", _refuse_workers(torch.nn.Module.to)
    yield torch, "compile", _exclude_library(torch.compile)
    for path, name in (
        ("torch._functorch.vmap", "_add_batch_dim"),
        ("torch._functorch.eager_transforms", "_wrap_for_grad"),
        ("torch.autograd.forward_ad", "make_dual"),
    ):
        module = import_module(path)
        if hasattr(module, name):
            yield module, name, _refuse_chains(getattr(module, name))
    for module in (torch.functional, torch.nn.functional, torch._tensor):
        yield module, "handle_torch_function", _call_wrappers(module.handle_torch_function)
    yield torch._VF, "lstm", _encode_states(_avoid_fused_lstm(torch._VF.lstm))
    for name in ("gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"):
        yield torch._VF, name, _encode_states(getattr(torch._VF, name))
    for name, definition in (("_pack_padded_sequence", _PACK), ("_pad_packed_sequence", _UNPACK)):
        yield torch._VF, name, _define_for_encoded(getattr(torch._VF, name), definition)
    rnn = torch.nn.utils.rnn
    yield rnn, "invert_permutation", _invert_remotely(rnn.invert_permutation)
    comparison = torch.testing._comparison
    yield comparison, "not_close_error_metas", _compare_copies(comparison.not_close_error_metas)
    init = torch.nn.init
    yield init, "_no_grad_trunc_normal_", _draw_here(init._no_grad_trunc_normal_)
    aligned = "_nested_tensor_from_mask_left_aligned"
    yield torch, aligned, _skip_remote_masks(getattr(torch, aligned))
    optimizer = torch.optim.Optimizer
    yield optimizer, _GROUP, staticmethod(_group_by_worker(getattr(optimizer, _GROUP)))
    yield optimizer, "zero_grad", _batch_zero_grad(optimizer.zero_grad)
    if versions.collects_gradients_in_lists(torch.optim.SGD):
        yield torch.optim.SGD, "_init_group", _collect_remotely(torch.optim.SGD._init_group)
    for path, name, substitute in (
        ("torch.nn.utils.clip_grad", _GROUP, _group_by_worker),
        ("torch.optim.swa_utils", _GROUP, _group_by_worker),
        ("torch.optim.adagrad", "_make_sparse", _make_sparse_remotely),
        *((f"torch.optim.{name}", name, _prefer_foreach) for name in _STEPS_IN_LISTS),
        *((f"torch.optim.{name}", "_get_value", _trace_number) for name in _STEPS_WITH_NUMBERS),
        *((f"torch.optim.{name}", "_dispatch_sqrt", _trace_sqrt) for name in _STEPS_WITH_NUMBERS),
    ):
        module = import_module(path)
        if hasattr(module, name):
            yield module, name, substitute(getattr(module, name))


def _maker(substitute: Function) -> Callable[[Function], Function]:
    """Return a function that makes a substitute; it gets torch's own function as its first argument."""

    @functools.wraps(substitute)
    def make(native: Function) -> Function:
        @functools.wraps(native)
        def call(*args: object, **kwargs: object) -> Nested:
            return substitute(native, *args, **kwargs)

        return call

    return make


@_maker
def _refuse_chains(transform: Function, tensor: Tensor, *args: Any, **kwargs: Any) -> Nested:
    """Refuse ``torch.func`` transforms on chains: they work on kernels, and a wrapper has no data."""
    if isinstance(tensor, Wrapper):
        raise WrapperLeakError.unseen(
            "a transform of torch.func",
            "use torch.autograd.grad, torch.autograd.functional or a batched operation, or fetch it: `p = p.get()`",
        )
    return transform(tensor, *args, **kwargs)


_count_modes = torch._C._len_torch_function_stack


def _call_wrappers(handle: Function) -> Function:
    """Pass a call whose tensors are all wrappers to them, without the search of torch for other types and modes."""

    @functools.wraps(handle)
    def substitute(function: Function, tensors: Sequence[object], /, *args: object, **kwargs: object) -> Nested:
        for tensor in tensors:
            if type(tensor) is not Wrapper and tensor is not None:
                return handle(function, tensors, *args, **kwargs)
        if _count_modes():
            return handle(function, tensors, *args, **kwargs)
        return call(function, args, kwargs)

    return substitute


def _run_source(call: Any) -> Function:
    """Run the Python function from which a TorchScript function was compiled, if it is called with chains."""

    def substitute(compiled: Any, *args: Any, **kwargs: Any) -> Nested:
        if not any(isinstance(leaf, Wrapper) for leaf in leaves((args, kwargs))):
            return call.__get__(compiled)(*args, **kwargs)
        source = getattr(compiled, "_torchdynamo_inline", None)
        if source is None or torch.jit._state._try_get_jit_cached_function(source) is None:
            raise WrapperLeakError.at(
                "TorchScript", "its operations bypass Python; use the module or function from which it was compiled"
            )
        return source(*args, **kwargs)

    return substitute


@_maker
def _refuse_remote_modules(create: Function, module: Any, *args: Any, **kwargs: Any) -> Nested:
    """Refuse to compile or trace a remote module: TorchScript would keep wrappers, which have no data."""
    if any(isinstance(tensor, Wrapper) for tensor in (*module.parameters(), *module.buffers())):
        place = "torch.jit.trace" if kwargs.get("is_tracing") else "torch.jit.script"
        raise WrapperLeakError.at(place, "fetch the model first: `model.get()`")
    torch.jit._builtins._register_builtin(torch._VF.lstm, "aten::lstm")  # TorchScript knows functions by id.
    return create(module, *args, **kwargs)


@_maker
def _refuse_workers(convert: Function, module: torch.nn.Module, *args: object, **kwargs: object) -> Nested:
    """Refuse ``model.to(bob)`` with the advice to send the model."""
    for target in (*args, *kwargs.values()):
        if isinstance(target, Worker | Location):
            raise TypeError(
                f"cannot move a model to worker {target.id!r} with Module.to: a worker is not a device; "
                f"send it: `model.send({target.id!r})`"
            )
    return convert(module, *args, **kwargs)


@_maker
def _compare_copies(compare: Function, actual: Nested, expected: Nested, **options: object) -> Nested:
    """Compare copies of remote tensors for ``torch.testing.assert_close``, if the user consents."""
    return compare(*reveal_copies("torch.testing.assert_close", (actual, expected)), **options)


@_maker
def _draw_here(draw: Function, tensor: Tensor, *args: object, **kwargs: object) -> Tensor:
    """Draw the truncated normal numbers for a remote tensor locally, and send them.

    Torch draws again where numbers are out of bounds, and so reads them. A plan cannot draw them anew in each call.
    """
    location = getattr(getattr(tensor, "child", None), "_location", None)
    if location is None or location.records:
        return draw(tensor, *args, **kwargs)
    shape, dtype = tensor.shape, tensor.dtype
    with torch._C.DisableTorchFunction():  # In ``with bob:``, the numbers would be drawn on the worker.
        drawn = draw(torch.empty(shape, dtype=dtype), *args, **kwargs)
    with torch.no_grad():
        return tensor.copy_(drawn.send(location))


@_maker
def _exclude_library(make: Function, *args: object, **kwargs: object) -> Nested:
    """Make ``torch.compile`` skip this library, so that calls on chains run one by one.

    The functions of this file are not skipped, because graphs of plain tensors contain them.
    """
    made = make(*args, **kwargs)
    _skip_this_library()
    return made


@functools.cache
def _skip_this_library() -> None:
    rules = import_module("torch._dynamo.trace_rules")
    for package in FEATURES:
        rules.add(package)
    for module in pkgutil.iter_modules([str(Path(__file__).parent)], "syft_torch."):
        if module.name != __name__:
            rules.add(module.name)


@_maker
def _skip_remote_masks(is_left_aligned: Function, tensor: Tensor, mask: object) -> bool:
    """Skip the check of remote masks: the worker refuses to create a nested tensor from a mask with gaps.

    For encoded numbers, answer that there are gaps: they cannot be nested.
    """
    if isinstance(tensor, NumericWrapper):
        return False
    return True if isinstance(mask, Wrapper) else is_left_aligned(tensor, mask)


@functools.cache  # TorchScript remembers the id of the substitute, so it is never freed.
def _avoid_fused_lstm(lstm: Function) -> Function:
    """Return ``lstm`` without torch's fused kernel for encoded numbers, which has no definition in simpler kernels."""

    @functools.wraps(lstm)
    def substitute(*args: Any, **kwargs: Any) -> Nested:
        if not any(type(leaf) is NumericWrapper for leaf in leaves((args, kwargs))):
            return lstm(*args, **kwargs)
        enabled = torch._C._get_mkldnn_enabled()
        torch._C._set_mkldnn_enabled(False)
        try:
            return lstm(*args, **kwargs)
        finally:
            torch._C._set_mkldnn_enabled(enabled)

    return substitute


@functools.cache  # The same.
def _encode_states(run: Function) -> Function:
    """Return a recurrent layer that encodes plain states for encoded input: torch adds to them in place."""

    @functools.wraps(run)
    def substitute(data: Tensor, *args: Tensor, **kwargs: Tensor) -> Nested:
        if type(data) is not NumericWrapper:
            return run(data, *args, **kwargs)
        # The sizes of packed sequences, if there are any, precede the states.
        place = int(isinstance(args[0], torch.Tensor) and not args[0].is_floating_point())
        states = map_leaves(lambda state: _encode_like(data, state), args[place])
        return run(data, *args[:place], states, *args[place + 1 :], **kwargs)

    torch.jit._builtins._register_builtin(substitute, f"aten::{run.__name__}")  # Found there by its identity.
    return substitute


def _encode_like(data: NumericWrapper, state: Tensor) -> Tensor:
    return data.new_zeros(state.shape) + state if type(state) is torch.Tensor else state


@functools.cache  # The same.
def _define_for_encoded(function: Function, definition: Function) -> Function:
    """Return a function with another definition for encoded numbers; torch's writes them into plain tensors."""

    @functools.wraps(function)
    def substitute(data: Tensor, *args: object, **kwargs: object) -> Nested:
        return (definition if type(data) is NumericWrapper else function)(data, *args, **kwargs)

    torch.jit._builtins._register_builtin(substitute, f"aten::{function.__name__}")  # Found there by its identity.
    return substitute


@_maker
def _invert_remotely(invert: Function, permutation: Tensor | None) -> Nested:
    """Invert a remote permutation where it is; torch writes local numbers into it."""
    if permutation is not None and location_of(permutation) is not None:
        return permutation.argsort()
    return invert(permutation)


class _Key(tuple[Any, Any]):
    """A device and a dtype, the key of a group; keys of different workers differ although they look the same."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


@_maker
def _group_by_worker(group: Function, tensorlists: Any, with_indices: bool = False) -> Nested:
    leaders = tensorlists[0]
    if Wrapper not in map(type, leaders):
        return group(tensorlists, with_indices)
    places: dict[Any, list[int]] = {}
    for index, leader in enumerate(leaders):
        pointer = leader.child if type(leader) is Wrapper else None
        if type(pointer) is PointerTensor:
            seen = pointer.look()
            place = pointer._location.id, seen.device, seen.dtype
        else:
            place = location_of(leader), leader.device, leader.dtype
        places.setdefault(place, []).append(index)
    groups = {}
    for (_worker, *key), members in places.items():
        lists = [[tensors[index] for index in members] if tensors else tensors for tensors in tensorlists]
        groups[_Key(key)] = lists, members
    return groups


@_maker
def _batch_zero_grad(zero_grad: Function, optimizer: torch.optim.Optimizer, set_to_none: bool = True) -> None:
    if not (set_to_none and _clear_remote_gradients(optimizer)):
        zero_grad(optimizer, set_to_none)


def _clear_remote_gradients(optimizer: torch.optim.Optimizer) -> bool:
    """Clear the gradients of all parameters if all are plain remote tensors; return whether they are."""
    pointers: dict[Any, list[PointerTensor]] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            pointer = parameter.child if type(parameter) is Wrapper else None
            if type(pointer) is not PointerTensor:
                return False
            location = pointer._location
            is_seen = pointer.gone is None and location.peek(pointer._id_at_location, _GRADIENT) is not None
            if not (is_seen or pointer.is_plain):
                return False
            if is_seen or pointer.has_gradient():
                forget_gradient(parameter)
                pointers.setdefault(location.id, []).append(pointer)
    for together in pointers.values():
        clear_gradient(together)
    return True


@_maker
def _collect_remotely(
    collect: Function,
    optimizer: torch.optim.SGD,
    group: dict[str, Any],
    params: list[Tensor],
    grads: list[Tensor],
    buffers: list[Tensor],
) -> bool:
    """Collect the gradients of a group without reading each three times."""
    if group.get("fused") or Wrapper not in map(type, group["params"]):
        return bool(collect(optimizer, group, params, grads, buffers))
    found = [(parameter, gradient) for parameter in group["params"] if (gradient := parameter.grad) is not None]
    params += [parameter for parameter, _ in found]
    grads += [gradient for _, gradient in found]
    if group["momentum"] != 0:
        buffers += [optimizer.state[parameter].get("momentum_buffer") for parameter, _ in found]
    return any(gradient.is_sparse for _, gradient in found)


@_maker
def _make_sparse_remotely(make: Function, grad: Tensor, grad_indices: object, values: object) -> Nested:
    """Create a sparse tensor like ``grad`` on the worker; ``torch.sparse_coo_tensor`` ignores the protocol."""
    if isinstance(values, Wrapper):
        return grad.new(grad_indices, values, grad.size())
    return make(grad, grad_indices, values)


@_maker
def _prefer_foreach(
    step: Function, params: list[torch.Tensor], grads: list[torch.Tensor], *args: object, **options: object
) -> Nested:
    """Use the list form of a step, one command for all remote parameters, unless the user chose a form."""
    if params and _may_use_lists(options) and all(map(_is_exact_in_lists, (*params, *grads))):
        options["foreach"] = True
    return step(params, grads, *args, **options)


def _trace_number(get_value: Function) -> Function:
    """Let a plan read a number from a tensor of its state again in each call."""

    @functools.wraps(get_value)
    def substitute(value: object) -> Nested:
        pointer: Any = value.child if type(value) is Wrapper else None
        is_recorded = pointer is not None and pointer._location.records
        return pointer._location.read_number(pointer) if is_recorded else get_value(value)

    return substitute


@_maker
def _trace_sqrt(sqrt: Function, value: Nested) -> Nested:
    """Let a plan trace a square root, for which torch 2.4 uses ``math.sqrt``; newer versions write ``x ** 0.5``."""
    is_number = issubclass(type(value), Traced)
    return value**0.5 if is_number else sqrt(value)


def _may_use_lists(options: dict[str, object]) -> bool:
    """Return whether the user chose no form, and the list form has the same effects as the single form."""
    if options.get("foreach", True) is not None or options.get("fused") is not None:
        return False
    # Only a differentiable step runs with gradients enabled; SGD does not pass the option on.
    if torch.is_grad_enabled() or options.get("capturable"):
        return False
    if not _NUMBERS.issuperset(map(type, options.values())) and any(map(torch.is_tensor, options.values())):
        return False
    # With nesterov the list form changes the gradients in place, unless another option has copied them.
    return bool(not options.get("nesterov") or options["weight_decay"] or options["maximize"])


def _is_exact_in_lists(tensor: Tensor) -> bool:
    """Return whether a tensor is remote, and operations on lists give the same bits as on single tensors.

    Only plain, dense tensors have a known form; a layer on the worker may have rules that lists would bypass.
    """
    pointer = tensor.child if type(tensor) is Wrapper else None
    if type(pointer) is not PointerTensor:
        return False
    if pointer._location.predicts:
        form = pointer.known_form
        return form is not None and form.dtype in _EXACT_IN_LISTS
    plain = pointer._location.peek(pointer._id_at_location, pointer.point_to_attr)
    is_dense = type(plain) in PLAIN_TYPES and plain.layout is torch.strided and not plain.is_nested
    return is_dense and plain.dtype in _EXACT_IN_LISTS
