"""Substitutes for the few functions inside of torch that go around torch's own protocol, or cost needless messages.

A helper that looks at tensors from C++ sees wrappers without data, all on one device. While torch is hooked these
helpers ask the wrappers. The functions that run an optimizer's step use lists for remote parameters. For plain tensors
each of them is torch's own.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from syft_core.exceptions import WrapperLeakError
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.values import Function, Nested, Tensor
from syft_torch.links import linking
from syft_torch.parameter import PLAIN_TYPES, location_of
from syft_torch.wrapper import Wrapper, take_gradient

_GROUP = "_group_tensors_by_device_and_dtype"
_STEPS_IN_LISTS = ("sgd", "adam", "adamw", "adagrad", "adadelta", "adamax", "rmsprop", "rprop")
"""Optimizers whose list form gives the bits of the single form: modules of ``torch.optim`` and a function in each."""
_EXACT_IN_LISTS = frozenset({torch.float32, torch.float64})
"""The dtypes for which it does; in half precision it rounds at other places, and complex numbers are split."""


def substitutes() -> Iterator[tuple[Any, str, Any]]:
    """Yield who has a helper, its name, and what is there while torch is hooked; versions of torch differ in that."""
    function = torch.autograd.Function
    yield function, "apply", linking(vars(function)["apply"], Wrapper)
    yield torch, "compile", _leaving_chains_alone(torch.compile)
    for path, name in (("vmap", "_add_batch_dim"), ("eager_transforms", "_wrap_for_grad")):
        module = import_module(f"torch._functorch.{path}")
        if hasattr(module, name):
            yield module, name, _refusing_chains(getattr(module, name))
    aligned = "_nested_tensor_from_mask_left_aligned"
    yield torch, aligned, _leaving_it_to_the_worker(getattr(torch, aligned))
    optimizer = torch.optim.Optimizer
    yield optimizer, _GROUP, staticmethod(_keeping_workers_apart(getattr(optimizer, _GROUP)))
    yield optimizer, "zero_grad", _taking_remote_gradients_together(optimizer.zero_grad)
    for path, name, substitute in (
        ("torch.nn.utils.clip_grad", _GROUP, _keeping_workers_apart),
        ("torch.optim.swa_utils", _GROUP, _keeping_workers_apart),
        ("torch.optim.adagrad", "_make_sparse", _made_beside_its_values),
        *((f"torch.optim.{name}", name, _using_lists_for_remote_parameters) for name in _STEPS_IN_LISTS),
    ):
        module = import_module(path)
        if hasattr(module, name):
            yield module, name, substitute(getattr(module, name))


def _refusing_chains(transform: Function) -> Function:
    """Refuse to transform a function of chains, before it runs: transforms work on kernels, where there is no data."""

    @functools.wraps(transform)
    def refused(tensor: Any, *args: Any) -> Nested:
        if isinstance(tensor, Wrapper):
            raise WrapperLeakError.at(
                "a transform of torch.func",
                "the operations run on a worker, where it cannot see them; use `torch.autograd.grad`, or an operation "
                "on the whole batch, or fetch the tensor",
            )
        return transform(tensor, *args)

    return refused


def _leaving_chains_alone(make: Function) -> Function:
    """Keep the compiler out of this library: calls on chains are left as they are, and run one by one.

    But for the functions of this file: with plain tensors they are part of other people's graphs.
    """

    @functools.wraps(make)
    def compiled(*args: Any, **kwargs: Any) -> Nested:
        made = make(*args, **kwargs)
        _skip_this_library()
        return made

    return compiled


@functools.cache
def _skip_this_library() -> None:
    rules = import_module("torch._dynamo.trace_rules")
    rules.add("syft_core")
    for module in pkgutil.iter_modules([str(Path(__file__).parent)], "syft_torch."):
        if module.name != __name__:
            rules.add(module.name)


def _leaving_it_to_the_worker(is_left_aligned: Function) -> Function:
    """Read no remote mask: the worker refuses to make a nested tensor by a mask with gaps."""

    @functools.wraps(is_left_aligned)
    def asked(tensor: Any, mask: Any) -> bool:
        return True if isinstance(mask, Wrapper) else is_left_aligned(tensor, mask)

    return asked


class _Key(tuple[Any, Any]):
    """A device and a dtype, as torch groups by; those of another worker are others, though they look the same."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _keeping_workers_apart(group: Function) -> Function:
    """Group tensors by their worker, too, and by the device and dtype that they have there."""

    @functools.wraps(group)
    def grouped(tensorlists: Any, with_indices: bool = False) -> Nested:
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

    return grouped


def _taking_remote_gradients_together(zero_grad: Function) -> Function:
    """Take the gradients of remote parameters away with one command for each worker."""

    @functools.wraps(zero_grad)
    def zeroed(optimizer: torch.optim.Optimizer, set_to_none: bool = True) -> None:
        if not (set_to_none and _take_gradients(optimizer)):
            zero_grad(optimizer, set_to_none)

    return zeroed


def _take_gradients(optimizer: torch.optim.Optimizer) -> bool:
    """Take the gradients of all parameters away if all are plain tensors on workers; return whether they are."""
    pointers: dict[Any, list[PointerTensor]] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            pointer = parameter.child if type(parameter) is Wrapper else None
            if type(pointer) is not PointerTensor or not pointer.is_plain:
                return False
            if pointer.has_gradient():
                pointers.setdefault(pointer._location.id, []).append(pointer)
    for together in pointers.values():
        take_gradient(together)
    return True


def _made_beside_its_values(make: Function) -> Function:
    """Make a sparse tensor like ``grad`` where its values are; ``torch.sparse_coo_tensor`` does not ask a head."""

    @functools.wraps(make)
    def made(grad: Tensor, grad_indices: object, values: object) -> Nested:
        if isinstance(values, Wrapper):
            return grad.new(grad_indices, values, grad.size())
        return make(grad, grad_indices, values)

    return made


def _using_lists_for_remote_parameters(step: Function) -> Function:
    """Run a step on remote parameters in its list form, one command for all of them, unless the user chose a form."""

    @functools.wraps(step)
    def stepped(params: list[torch.Tensor], grads: list[torch.Tensor], *args: Any, **options: Any) -> Nested:
        if _may_use_lists(options) and params and all(map(_is_exact_in_lists, (*params, *grads))):
            options["foreach"] = True
        return step(params, grads, *args, **options)

    return stepped


def _may_use_lists(options: dict[str, object]) -> bool:
    """Return whether the user chose no form, and the list form does what the single form would do."""
    if options.get("foreach", True) is not None or options.get("fused") is not None:
        return False
    # Only a differentiable step runs with gradients enabled; SGD does not pass the option on.
    if torch.is_grad_enabled() or options.get("capturable"):
        return False
    for option in options.values():
        if isinstance(option, torch.Tensor):
            return False
    # With nesterov the list form adds to the gradients in place, unless one of the others has copied them.
    return bool(not options.get("nesterov") or options["weight_decay"] or options["maximize"])


def _is_exact_in_lists(tensor: Tensor) -> bool:
    """Return whether a tensor is remote, and operations on lists give the bits of operations on single tensors.

    Only plain, dense tensors have a known form; a layer on the worker may have rules that lists would go around.
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
