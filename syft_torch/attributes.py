"""TorchAttributes: the op table of torch, and how its tensors work."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch.overrides import get_overridable_functions, resolve_name

from syft_core.exceptions import OperationNotAllowedError, SerdeError
from syft_core.features import Later, later
from syft_core.hook.attributes import FrameworkAttributes, Op, Spelling, describe_op, words
from syft_core.hook.autograd import Autograd
from syft_core.hook.caches import remember
from syft_core.hook.chain import end_of
from syft_core.hook.forms import Form, Inferred, form, known_forms
from syft_core.hook.operators import INPLACE_OPERATORS, SYNONYMS, UNARY_OPERATORS
from syft_core.hook.rules import leaves, map_leaves
from syft_core.location import Location
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_torch import links
from syft_torch.aten import ATEN
from syft_torch.facts import FACTS_OF_FORM, FACTS_OF_LAYOUT, describe
from syft_torch.guards import add_guard
from syft_torch.isolation import WATCHERS, isolate, require_no_saving_hooks
from syft_torch.layouts import correct
from syft_torch.numeric import NumericWrapper
from syft_torch.parameter import PLAIN_TYPES, exchange_all, has_hooks, require_all_movable
from syft_torch.placing import Placing
from syft_torch.reading import name_storage, read_numbers
from syft_torch.versions import run_engine
from syft_torch.wrapper import Wrapper

# torch resets the warning filters in each of 1,400 look-ups; the wrapped function does not.
_name_of: Callable[[Any], str | None] = getattr(resolve_name, "__wrapped__", resolve_name)


EXCLUDE = words(
    "set_ __setstate__ _cdata _clear_non_serializable_cached_data as_subclass reinforce "
    "name names rename rename_ _update_names refine_names align_to align_as volatile "
    "autocast sym_float _sym_int sym_ite sym_max sym_min sym_not sym_sum sym_sqrt"
)
"""Names of torch that make no sense on a chain: memory of the wrapper itself, internals, removed names, a context
manager, and functions of symbolic numbers, which would turn a tensor into a Python number."""

DIFFERS_ON_META = words(
    "backward embedding_bag native_batch_norm quantize_per_tensor quantize_per_channel _autocast_to_full_precision "
    "_autocast_to_reduced_precision"
)
"""Operations whose results on the meta device are missing, or have a different form than on other devices."""

# Methods that reach the protocol although torch does not list them.
_UNLISTED_METHODS = words(
    "new new_empty new_empty_strided new_full new_ones new_tensor new_zeros stride to_padded_tensor to_sparse_bsc "
    "to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr unflatten _addmm_activation _conj _conj_physical "
    "_neg_view _is_zerotensor"
)
_UNLISTED_FUNCTIONS = words(
    "_has_compatible_shallow_copy_type "
    "rand_like randn_like randint_like eye normal fill vander as_strided result_type linspace logspace segment_reduce "
    "_VF.atleast_1d _VF.atleast_2d _VF.atleast_3d _VF.meshgrid "
    "nn.functional.hardswish nn.functional.hardsigmoid nn.functional.elu_ nn.functional.leaky_relu_ "
    "nn.functional.hardtanh_ _C._nn.pad_sequence _pack_padded_sequence _pad_packed_sequence "
    "_transformer_encoder_layer_fwd _native_multi_head_attention _nested_tensor_from_mask "
    "_weight_norm _is_all_true _is_any_true _standard_gamma _sample_dirichlet _grouped_mm "
    "sparse.mm sparse.addmm sparse.sampled_addmm sparse.softmax sparse.log_softmax sparse.spsolve _sparse_sum"
)
"""Functions that torch does not list: those that users call, and those that torch's modules and distributions call."""
# Attributes whose assignment reaches the protocol.
_SETTERS = words("data grad requires_grad _backward_hooks _post_accumulate_grad_hooks grad_dtype")
# The same operations on lists of tensors; since torch 2.15 they are also public, as torch.foreach.
_ON_LISTS = ("torch._foreach_", "torch.foreach.")
_SYNONYMS = {**SYNONYMS, "concatenate": "cat", "concat": "cat", "expit": "sigmoid"}
_INTEGRAL = frozenset({torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})
_INIT_FUNCTIONS = words("uniform_ normal_ constant_ kaiming_uniform_")


def is_inplace_name(name: str) -> bool:
    """Return whether a torch method or function called ``name`` changes its tensor.

    >>> [is_inplace_name(n) for n in ("add_", "add", "__iadd__", "__index__", "__invert__", "__init__")]
    [True, False, True, False, False, False]
    """
    return name in INPLACE_OPERATORS or (name.endswith("_") and not name.endswith("__"))


class _FormsRestored(contextlib.AbstractContextManager[None]):
    """Undoes changes of size by a block that fails: torch sets the size before it allocates the memory for it.

    The tensors would show old memory or, if their storage could not be resized, memory of others. It is a class because
    every write comes here, and a generator would be slower.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._before = []
        for tensor in tensors:
            if (storage := _storage_of(tensor)) is not None:
                place = tensor.storage_offset(), tensor.shape, tensor.stride()
                self._before.append((tensor, storage, storage.nbytes(), place))

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        for tensor, storage, size, place in self._before if kind is not None else ():
            _shrink(storage, size)
            if place != (tensor.storage_offset(), tensor.shape, tensor.stride()):
                with torch.no_grad():
                    tensor.as_strided_(place[1], place[2], place[0])


_FIND_SAVED = Later("syft_torch.graphs:find_saved")


class TorchAttributes(FrameworkAttributes):
    """The properties of torch that the core uses.

    The table is generated from the installed torch's own list of overridable functions, without ``EXCLUDE`` and with a
    few that torch does not list. Functions that use files, processes or the state of torch itself (``save``, ``load``,
    ``manual_seed``, ``set_default_dtype`` …) are not overridable, so they are not in the table.
    """

    ALIAS = "torch"
    kernels = later("syft_mpc.torch.kernels:KERNELS")
    structural = later("syft_torch.structural:STRUCTURAL")
    masking = later("syft_torch.structural:MASKING")
    transposing = later("syft_torch.structural:TRANSPOSING")
    selecting = later("syft_torch.structural:SELECTING")
    alternatives = later("syft_torch.alternatives:ALTERNATIVES")
    convolve = staticmethod(later("syft_torch.structural:convolve"))
    real_dtype = staticmethod(later("syft_torch.structural:real_dtype"))
    exclude = EXCLUDE
    worker_methods = (
        *("tensor", "zeros", "ones", "full", "empty", "eye", "arange", "linspace", "logspace"),
        *("rand", "randn", "randint", "randperm", "tril_indices", "triu_indices", "sparse_coo_tensor"),
    )
    result_types: ClassVar[Mapping[str, type]] = {
        name: kind for name, kind in vars(torch.return_types).items() if isinstance(kind, type)
    }
    facts_of_form = FACTS_OF_FORM
    facts_of_layout = FACTS_OF_LAYOUT
    number_types = (torch.SymInt, torch.SymFloat)
    autograd = Autograd(gradient="grad", history="grad_fn", backward="backward", identity="__pos__")
    global_state_change_methods = frozenset({"seed", "manual_seed"})
    aten = ATEN
    """The op table of numeric wrappers: torch's kernels."""

    def __init__(self, torch: Any, hook: Any = None) -> None:
        self.torch = torch
        self.hook = hook
        self.torch_modules = {
            "torch": torch,
            "torch.functional": torch.functional,
            "torch.nn.functional": torch.nn.functional,
        }
        super().__init__(torch, Wrapper, NumericWrapper)
        self.inplace_methods = frozenset(op.attr for op in self.ops if op.inplace and op.spelling == "method")

    def _creator(self, name: str) -> Function:
        return _make_sparse if name == "sparse_coo_tensor" else super()._creator(name)

    def copy(self, tensor: Tensor) -> Tensor:
        """Return a clone, which is part of the same graph."""
        return _clone(tensor)

    def positions_of(self, mask: Tensor) -> tuple[Tensor, ...] | None:
        """Return the positions that a mask selects."""
        return mask.nonzero(as_tuple=True) if mask.dtype is torch.bool and mask.dim() else None

    def infers_on_device(self, modes: str | None) -> bool:
        """Return whether autocast is on, which the meta device does not have."""
        return not (self.modes() if modes is None else modes).endswith(" None")

    def explain_read(self) -> str:
        """Return advice to skip the checks of torch's distributions, if one of them reads the value."""
        frame = inspect.currentframe()
        while frame is not None:
            if str(frame.f_globals.get("__name__")).startswith("torch.distributions"):
                return "torch.distributions.Distribution.set_default_validate_args(False)"
            frame = frame.f_back
        return ""

    def is_integral(self, dtype: object) -> bool:
        """Return whether a dtype is one of integers or booleans."""
        return dtype in _INTEGRAL

    def convert(self, value: Any) -> Any:
        """Return numpy's arrays as tensors, and its real numbers as Python's; torch ignores imaginary parts."""
        if hasattr(value, "__setitem__"):
            with torch._C.DisableTorchFunction():  # Here, also where new tensors are placed on a worker.
                return torch.tensor(value)
        return value if isinstance(number := value.item(), complex) else number

    @staticmethod
    def alias(tensor: Tensor) -> Tensor:
        """Return a view, or outside of graphs a detached tensor."""
        return tensor.view_as(tensor) if tensor.requires_grad else tensor.detach()

    def transfer(self, tensor: Tensor) -> Tensor:
        """Return a leaf with a copy of the data and the gradient, and the same id."""
        gradient = tensor.grad if tensor.is_leaf else None
        outside = tensor.detach() if tensor.requires_grad else tensor
        return _leaf(tensor, _clone(outside), None if gradient is None else _clone(gradient.detach()))

    def replace_in_place(self, tensor: Tensor, other: object) -> None:
        """Swap the contents of two tensor objects, or assign to a plain tensor with weak references to it or hooks."""
        is_plain = type(tensor) in PLAIN_TYPES and type(other) in PLAIN_TYPES
        if is_plain and isinstance(other, torch.Tensor) and (weakref.getweakrefcount(tensor) or has_hooks(tensor)):
            tensor.data, tensor.grad = other.data, other.grad
        else:
            require_all_movable([tensor], in_graphs=True)
            exchange_all([tensor], [other])

    def expand(self, tensor: Tensor, shape: tuple[int, ...]) -> Any:
        """Repeat a tensor along axes of length one, to a shape."""
        return tensor.expand(shape)

    def permute(self, tensor: Tensor, axes: Sequence[int]) -> Any:
        """Reorder the axes of a tensor."""
        return tensor.permute(tuple(axes))

    def join(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Join tensors along an axis."""
        return self.structural["cat"](tensors, axis)

    def fact(self, op: Op, form: Form) -> Any:
        """Return a fact about a tensor of this form."""
        return op.run(torch.empty(form.shape, dtype=form.dtype, device="meta"))

    def memory_of(self, tensor: Tensor) -> frozenset[int | str] | None:
        """Return the storage of a tensor, which its views share, and those of its parts.

        A tensor quantized per channel holds scales and zero points, a sparse one indices and values; a nested one has
        one storage. Nothing is known about other layouts, such as that of MKL-DNN, and about types derived from these.
        """
        if type(tensor) not in PLAIN_TYPES:
            return None
        if tensor.layout is _STRIDED:
            found = frozenset((tensor.untyped_storage()._cdata,))
            return found if not tensor.is_quantized else _join(found, map(self.memory_of, _parts_of_quantizer(tensor)))
        if tensor.layout not in _PARTS:
            return None
        return _join(frozenset(), [self.memory_of(part) for part in _parts_of(tensor)])

    def is_form_only(self, tensor: Tensor) -> bool:
        """Return whether a tensor is on the meta device."""
        return bool(tensor.is_meta)

    def is_borrowed(self, tensor: Tensor) -> bool:
        """Return whether torch did not allocate a storage of a tensor: others may have the same memory."""
        parts = [tensor] if tensor.layout is _STRIDED else _parts_of(tensor)
        parts += _parts_of_quantizer(tensor) if tensor.is_quantized else []
        return not all(part.untyped_storage().resizable() for part in parts)

    def make_resizable(self, tensors: Sequence[Tensor]) -> None:
        """Copy the storage that tensors share unless torch can resize it; it cannot resize received memory."""
        strided = [tensor for tensor in tensors if _storage_of(tensor) is not None]
        if not strided or strided[0].untyped_storage().resizable():
            return
        storage = strided[0].untyped_storage().clone()
        for tensor in strided:
            form = tensor.storage_offset(), tensor.shape, tensor.stride()
            tensor.data = torch.empty(0, dtype=tensor.dtype).set_(storage, *form)

    def clear_growth(self, tensor: Tensor) -> contextlib.AbstractContextManager[None] | None:
        """Zero the memory that a block adds to a tensor's storage; None for a sparse tensor, which gets other parts."""
        storage = _storage_of(tensor)
        return None if storage is None else _clear_growth_of(storage)

    restore_forms = _FormsRestored

    def is_partial_view(self, tensor: Tensor) -> bool:
        """Return whether the storage of a tensor is larger than the tensor."""
        if tensor.layout is not _STRIDED:
            return False
        return bool(tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size())

    def is_part_of_model(self, tensor: Tensor) -> bool:
        """Return whether a tensor is a Parameter, or computed from tensors that need gradients."""
        return isinstance(tensor, torch.nn.Parameter) or not tensor.is_leaf

    def detach(self, tensor: Tensor) -> Tensor:
        """Return a leaf unchanged; detach any other tensor, keeping its id, tags and description."""
        if tensor.is_leaf:
            return tensor
        outside = tensor.detach()
        outside.__dict__.update({name: value for name, value in tensor.__dict__.items() if name in _IDENTITY})
        return outside

    def transfer_ownership(self, tensor: Tensor, references: int) -> Tensor:
        """Return a leaf itself if no other tensor uses its storage, or that of its gradient.

        If a graph refers to it only to accumulate its gradient, return a new leaf on the same storage.
        """
        if type(tensor) not in PLAIN_TYPES or not tensor.is_leaf or not _has_own_storage(tensor):
            return None
        gradient = tensor.grad
        if gradient is not None and (sys.getrefcount(gradient) > _ONLY_A_GRADIENT or not _has_own_storage(gradient)):
            return None
        if tensor._use_count() == 1:
            return None if references else tensor
        start = tensor.view_as(tensor).grad_fn
        # Hold the node that accumulates its gradient, and count.
        adds = None if start is None else start.next_functions
        if adds is None or tensor._use_count() > _USED_BY_NODE or references > _REFERENCES_OF_GRAPH:
            return None
        tensor.grad = None
        return _leaf(tensor, tensor if type(tensor) is torch.nn.Parameter else tensor.data, gradient)

    def is_shared(self, *tensors: Tensor) -> bool:
        """Return whether other tensors use the storage of one of these; aliases of a sparse tensor are not counted."""
        for tensor in tensors:
            if tensor.layout is not _STRIDED or tensor.is_quantized:
                return True
            storage = tensor.untyped_storage()
            if _count_users(storage._cdata) > _ONE_USER:
                return True
        return False

    def is_alone(self, tensor: Tensor) -> bool:
        """Return whether nothing else uses the storage of a tensor, or holds the tensor itself, as a quantizer does."""
        return tensor._use_count() == 1 and not self.is_shared(tensor)

    def count_threads(self) -> int:
        """Return the number of threads for one operation."""
        return int(torch.get_num_threads())

    def modes(self) -> str:
        """Return grad mode, inference mode, default dtype, and the autocast dtype for CPUs if autocast is on."""
        autocast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
        modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(), autocast
        known = _modes.get(modes)
        if known is None:
            known = _modes[modes] = " ".join(map(str, modes))
        return known

    def apply_modes(self, modes: str, args: object, kwargs: object) -> contextlib.AbstractContextManager[None]:
        """Return a context with the grad mode, inference mode and autocast of another process.

        A different default dtype is refused if it may affect the result: torch has one for all threads of a process.
        """
        grad, inference, dtype, autocast = _read_modes(modes)
        if dtype is not torch.get_default_dtype():
            _require_independent_of_default(dtype, args, kwargs)
        if autocast is None and inference is torch.is_inference_mode_enabled() and not _is_autocast():
            return torch.set_grad_enabled(grad)  # type: ignore[no-any-return]  # untyped
        return _set_modes(grad, inference, autocast)

    generators = (torch.Generator,)
    isolate = staticmethod(isolate)
    watchers = WATCHERS

    def place_new_tensors(self, location: Location) -> contextlib.AbstractContextManager[Any]:  # type: ignore[override]  # every address is one
        """Return a mode in which torch's functions create new tensors at ``location``."""
        return Placing(self, location)

    stateful = (torch.nn.Module, torch.optim.Optimizer)
    hold_state = staticmethod(later("syft_torch.recording:hold_state"))
    find_state = staticmethod(later("syft_torch.recording:find_state"))
    has_hooks = staticmethod(has_hooks)

    default_float = "float32"

    def name_storage(self, tensor: Tensor) -> str:
        """Return one word for how a tensor stores its numbers, or "" if it is dense."""
        return name_storage(tensor)

    def read_numbers(self, tensor: Tensor) -> tuple[Tensor | None, str]:
        """Return a dense tensor with the numbers that a tensor stores, and a note that explains them."""
        return read_numbers(tensor)

    def form_of(self, tensor: Tensor) -> Form | None:
        """Return the form of a plain strided tensor."""
        if type(tensor) not in PLAIN_TYPES or tensor.layout is not _STRIDED or tensor.is_nested or tensor.is_quantized:
            return None  # Every metered or private operation comes here, so ``form`` is not even called.
        shape, strides, leaf = tensor.shape, tensor.stride(), tensor.is_leaf
        key = _SIZE, shape, strides, tensor.dtype, tensor.device, tensor.requires_grad, leaf
        return known_forms.get(key) or form(*key[1:])

    def form_of_copy(self, tensor: Tensor) -> Form | None:
        """Return the form of a copy, which is a leaf; its strides are certain only for contiguous tensors."""
        if not _is_common(tensor) or not tensor.is_contiguous():
            return None
        return form(tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.requires_grad)

    def warm_up(self) -> None:
        """Prepare the meta device."""
        _meta_device.prepare().join()

    def state(self) -> Any:
        """Return grad mode, which is off in inference mode, and default dtype; None with autocast or before warm-up."""
        require_no_saving_hooks()
        if not _meta_device.is_ready:
            _meta_device.prepare()
            return None
        if _is_autocast():
            return None
        return torch.is_grad_enabled(), torch.get_default_dtype()

    def infer(self, op: Op, args: object, kwargs: object) -> Inferred | None:
        """Run ``op`` on the meta device, where tensors have no values."""
        with isolate() or contextlib.nullcontext():
            return self._infer(op, args, kwargs)

    def _infer(self, op: Op, args: object, kwargs: object) -> Inferred | None:
        operands = [leaf for leaf in leaves((args, kwargs)) if type(leaf) is Form]
        devices = {operand.device for operand in operands}
        if len(devices) != 1 or op.operation in DIFFERS_ON_META:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (device,) = devices
                shadows, named = map_leaves(functools.partial(_shadow, device=device), (args, kwargs))
                result = op.run(*shadows, **named)
        except Exception:  # noqa: BLE001  # on the meta device torch may raise any error; the worker then decides
            return None
        pairs = zip(leaves((args, kwargs)), leaves((shadows, named)), strict=True)
        changed: list[Any] = [shadow for leaf, shadow in pairs if type(leaf) is Form]
        results = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
        forms = self._lay_out(op, args, kwargs, [_form_on(device, leaf) for leaf in (*results, *changed)])
        if forms is None:
            return None
        made, after = iter(forms), forms[len(results) :]
        given = map_leaves(lambda leaf: next(made) if isinstance(leaf, torch.Tensor) else leaf, result)
        kept = {leaf.untyped_storage()._cdata for leaf in results}
        shared = tuple(place for place, leaf in enumerate(changed) if leaf.untyped_storage()._cdata in kept)
        return Inferred(given, after, _has_dense_gradients((args, kwargs), (shadows, named), result), shared)

    def _lay_out(self, op: Op, args: object, kwargs: object, found: Any) -> list[Form] | None:
        if None in found:
            return None
        with self.protect_rng(op), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return correct(op, args, kwargs, found, self.example)

    def infer_size(self, op: Op, args: object, kwargs: object) -> tuple[int, int] | None:
        """Run ``op`` on the meta device; views of operands need no new memory, but tensors saved by a graph do.

        With gradients if an operand needs them, because a signature does not say whether they are enabled.
        """
        if op.operation in DIFFERS_ON_META:
            return None
        if any(leaf.requires_grad for leaf in leaves((args, kwargs)) if type(leaf) is Form):
            with torch.inference_mode(False), torch.enable_grad():
                found = self._infer_size(op, args, kwargs)
            if found is not None:
                return found
        return self._infer_size(op, args, kwargs)

    def _infer_size(self, op: Op, args: object, kwargs: object) -> tuple[int, int] | None:
        try:
            with warnings.catch_warnings(), self.protect_rng(op), _META:  # Functions without operands are placed there.
                warnings.simplefilter("ignore")
                shadows, named = map_leaves(_to_meta, (args, kwargs))
                before = _storages((shadows, named))
                result = op.run(*shadows, **named)
                after = _storages((result, shadows, named))
                after |= self.saved_by_graphs(
                    [leaf for leaf in leaves((result, shadows, named)) if isinstance(leaf, torch.Tensor)]
                )
        except Exception:  # noqa: BLE001  # on the meta device torch may raise any error
            return None
        new = sum(max(size - before.get(storage, 0), 0) for storage, size in after.items())
        return new, sum(1 for leaf in leaves(result) if isinstance(leaf, torch.Tensor))

    def bytes_of(self, tensor: Tensor) -> int:
        """Return the size of the storage, which views keep in use too, and of a gradient."""
        if tensor.layout in _PARTS:
            return sum(map(self.bytes_of, _parts_of(tensor)))
        if tensor.layout is not _STRIDED:
            return int(tensor.numel() * tensor.element_size())
        gradient = tensor.grad if tensor.is_leaf else None
        parts = _parts_of_quantizer(tensor) if tensor.is_quantized else []
        parts += [] if gradient is None else [gradient]
        return int(tensor.untyped_storage().nbytes()) + sum(map(self.bytes_of, parts))

    def saved_by_graphs(self, tensors: Sequence[Tensor]) -> dict[int, int]:
        """Return the sizes of the storages that the nodes of the graphs have saved."""
        found: dict[int, int] = _FIND_SAVED(tensors)
        return found

    def form_of_gradient(self, known: Form) -> Form | None:
        """Return the form of a dense gradient, which has the strides of its tensor if that is dense."""
        if known not in _forms_of_gradients:
            shadow = _shadow(known).detach()
            dense = shadow.is_contiguous() or _is_dense(shadow)
            gradient = form(known.shape, known.strides, known.dtype, known.device) if dense else None
            remember(_forms_of_gradients, known, gradient)
        return _forms_of_gradients[known]

    def parse_backward(self, op: Op, args: Args, kwargs: Kwargs) -> tuple[Any, Any, bool]:
        """Return the roots of a backward pass, its ``inputs``, and whether it creates no graph."""
        names = _BACKWARD if op.spelling == "function" else _BACKWARD_METHOD
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        return given.get("tensors"), given.get("inputs"), not given.get("create_graph")

    def find_leaves(self, roots: Sequence[Tensor]) -> list[Tensor] | None:
        """Walk the graph; give up at a custom function, which may run a backward pass of its own."""
        found = [root for root in roots if root.requires_grad and root.grad_fn is None]
        waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            if type(node) is _ACCUMULATE:
                found.append(node.variable)
            elif isinstance(node, _WRITTEN_IN_PYTHON) and not type(node).__module__.startswith("syft_torch."):
                return None
            else:
                for following, _ in node.next_functions:
                    if following is not None and following not in seen:
                        seen.add(following)
                        waiting.append(following)
        return found

    def answer_from_form(self, op: Op, form: Form, args: Args) -> Nested:
        """Run ``op`` on a meta tensor of this form, unless it is a field of the form."""
        if op.attr in _FIELDS:
            return getattr(form, op.attr)
        return op.run(_shadow(form), *args)

    def shadow(self, argument: object, device: object) -> Tensor:
        """Return a meta tensor for a form, and the meta device for ``device``."""
        return _shadow(argument, device)

    def example(self, form: Form, kind: int) -> Tensor | None:
        """Return a tensor of a form on the CPU; a large one takes little memory until it is written to."""
        span = 1 + sum((size - 1) * stride for size, stride in zip(form.shape, form.strides, strict=True))
        span = 0 if 0 in form.shape else span
        is_large = span * form.dtype.itemsize > _LARGEST_EXAMPLE
        if form.device.type != "cpu" or (is_large and kind > 1):
            return None
        if is_large and kind == 1:
            return _connect(torch.ones((), dtype=form.dtype).expand(form.shape), form)
        with torch.inference_mode(False), torch.no_grad():
            memory = torch.zeros(span, dtype=form.dtype)
            example = torch.empty(0, dtype=form.dtype).set_(memory.untyped_storage(), 0, form.shape, form.strides)
            if kind == 1:
                memory.fill_(1)
            elif kind:
                memory.copy_(torch.arange(span) * 0.618 % 1 if form.dtype.is_floating_point else torch.arange(span) % 2)
            if kind == 2 and example.dim() > 1 and example.shape[-1] == example.shape[-2] and 0 not in form.strides:
                example.copy_(torch.eye(form.shape[-1]).expand(form.shape))
        return _connect(example, form)

    def needs_data(self, error: Exception) -> bool:
        """Return whether a call failed because meta tensors have no data: torch names the device in such errors."""
        return isinstance(error, NotImplementedError) or _NAMES_META.search(str(error)) is not None

    def explain_backward(self, error: Exception) -> Exception | None:
        """Return one of autograd's errors about graphs, without the names and versions of their nodes."""
        found = _ABOUT_GRAPHS.match(str(error)) if isinstance(error, RuntimeError) else None
        return None if found is None else RuntimeError(found.group())

    def as_with_data(self, error: Exception) -> Exception:
        """Return the kernel's error for that of a meta kernel, which only asserts the shapes before torch 2.13."""
        return RuntimeError(*error.args) if type(error) is AssertionError else error

    def zeros(self, forms: Sequence[Form], operands: Sequence[Tensor]) -> list[Any]:
        """Return zeros; the gradients that they pass on to the operands are zeros."""
        device = operands[0].device if operands else None
        differentiable = [operand for operand in operands if operand.requires_grad]
        if not (differentiable and any(known.requires_grad for known in forms) and torch.is_grad_enabled()):
            return [_zeros(known, device) for known in forms]
        return list(_Zeros.apply(forms, device, *differentiable))

    stand_ins = staticmethod(later("syft_torch.stand_ins:make_stand_ins"))

    def clear(self, tensor: Tensor) -> None:
        """Set a tensor to zeros, including the memory between its elements."""
        if (storage := _storage_of(tensor)) is not None and not tensor.is_meta:
            storage.fill_(0)
        tensor.detach().zero_()  # Count the write.

    def overwrite(self, target: Tensor, value: Any) -> None:
        """Resize and copy, as operations do with ``out``."""
        if target.shape != value.shape:
            target.resize_(value.shape)
        target.copy_(value)

    def note_write(self, tensor: Tensor) -> None:
        """Increment the version counter; a tensor without one cannot be saved by a graph."""
        if not tensor.is_inference():
            torch.autograd.graph.increment_version(tensor)

    def protect_rng(self, op: Op) -> contextlib.AbstractContextManager[None]:
        """Return a context with a new seed for an operation that draws random numbers."""
        return _own_generator() if op.random else contextlib.nullcontext()

    def _collect(self) -> Iterator[Op]:
        seen: set[Function] = set()
        for name, func in _torch_functions():
            if func not in seen and _last(name) not in EXCLUDE:
                seen.add(func)
                yield _op(name, func)

    def _methods(self) -> dict[str, Op]:
        methods = {op.attr: op for op in self.ops if op.name.startswith("torch.Tensor.") and op.spelling != "setter"}
        # torch lists its operators, except the unary ones and `@=`.
        for operator, operation in UNARY_OPERATORS.items():
            methods.setdefault(operator, methods[operation])
        methods.setdefault("__imatmul__", methods["__matmul__"])
        return methods

    # --- the published names

    get_native_torch_name = staticmethod(FrameworkAttributes.get_native_framework_name)

    @staticmethod
    def apply_fix16922(torch: object) -> None:
        """Do nothing: the names of the max-pool functions are correct since torch 1.0.2."""

    def eval_torch_modules(self) -> dict[str, Function]:
        """Map each function's command name to the native function."""
        return {op.name: op.func for op in self.ops if op.spelling == "function"}


def _make_sparse(*args: object, **kwargs: object) -> Nested:
    """Create a sparse tensor and check it: with an index out of range torch would later access memory out of bounds."""
    return torch.sparse_coo_tensor(*args, **{**kwargs, "check_invariants": True}).clone()  # Share no memory.


# --- memory


def _has_own_storage(tensor: Tensor) -> bool:
    """Return whether torch allocated the storage of a tensor, and no other tensor or array uses it."""
    if tensor.layout is not _STRIDED or tensor.is_quantized:
        return False
    storage = tensor.untyped_storage()
    return bool(_count_users(storage._cdata) <= _ONE_USER and storage.resizable())


_count_users: Callable[[int], int] = torch._C._storage_Use_Count


def _measure_counts() -> tuple[int, int, int]:
    """Measure the counts of an unshared tensor, held by one local variable.

    Return the users of its storage, the references to its gradient, and the references that a graph adds to a tensor.
    """
    tensor = torch.zeros(1, requires_grad=True)
    tensor.grad = torch.zeros(1)
    storage, gradient = tensor.untyped_storage(), tensor.grad
    references = sys.getrefcount(tensor)
    with torch.enable_grad():
        graph = tensor + 1
    used = sys.getrefcount(tensor) - references
    del graph
    return _count_users(storage._cdata), sys.getrefcount(gradient), used


_ONE_USER, _ONLY_A_GRADIENT, _REFERENCES_OF_GRAPH = _measure_counts()
_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    **dict.fromkeys((torch.sparse_csr, torch.sparse_bsr), ("crow_indices", "col_indices", "values")),
    **dict.fromkeys((torch.sparse_csc, torch.sparse_bsc), ("ccol_indices", "row_indices", "values")),
}
"""The methods that return the parts of a sparse tensor."""


def _parts_of(tensor: Tensor) -> list[Tensor]:
    return [getattr(tensor.detach(), part)() for part in _PARTS.get(tensor.layout, ())]


def _parts_of_quantizer(tensor: Tensor) -> list[Tensor]:
    """Return the tensors that a quantized tensor holds next to its elements; aliases and copies share them."""
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return []
    return [tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()]


def _join(found: frozenset[int | str], parts: Iterable[frozenset[int | str] | None]) -> frozenset[int | str] | None:
    """Return the memory of a tensor and of its parts, or None if that of a part is not known."""
    known = list(parts)
    return None if None in known else found.union(*[part for part in known if part is not None])


def _clone(tensor: Tensor) -> Tensor:
    """Return a clone that shares nothing; torch's own keeps the scales of a tensor quantized per channel."""
    if not (tensor.is_quantized and _parts_of_quantizer(tensor)):
        return tensor.clone()
    scales, zero_points = [part.clone() for part in _parts_of_quantizer(tensor)]
    options: Kwargs = {"axis": tensor.q_per_channel_axis(), "dtype": tensor.dtype, "device": tensor.device}
    twin = torch._empty_per_channel_affine_quantized(tensor.shape, scales=scales, zero_points=zero_points, **options)
    # Not `twin.copy_`, with which it would hold the same scales again.
    twin.untyped_storage().copy_(tensor.clone(memory_format=torch.contiguous_format).untyped_storage())
    return twin


_USED_BY_NODE = 2
"""The use count of a tensor held by a variable and the node that accumulates its gradient."""


def _leaf(tensor: Tensor, data: Any, gradient: Tensor) -> Tensor:
    if type(tensor) is torch.nn.Parameter:
        data = torch.Tensor._make_subclass(torch.nn.Parameter, data, tensor.requires_grad)
    elif tensor.requires_grad:
        data.requires_grad_()
    if gradient is not None:
        data.grad = gradient
    known = tensor.__dict__
    for name in _IDENTITY.intersection(known):
        data.__dict__[name] = set(known[name]) if type(known[name]) is set else known[name]
    return data


_IDENTITY = frozenset({"_syft_id", "_syft_tags", "_syft_description"})
"""The attributes that are transferred with a tensor."""

# --- forms

_META = torch.device("meta")
_STRIDED, _SIZE = torch.strided, torch.Size
_FIELDS = words("shape dtype device requires_grad is_leaf")
_is_autocast: Callable[[], bool] = torch._C._is_any_autocast_enabled


def _is_common(tensor: Tensor) -> bool:
    """Return whether a form describes a tensor completely: strided, not quantized, not nested, not a subclass."""
    return (
        type(tensor) in PLAIN_TYPES and tensor.layout is torch.strided and not (tensor.is_quantized or tensor.is_nested)
    )


def _is_dense(tensor: Tensor) -> bool:
    """Return whether the elements of a tensor fill its memory without gaps, each place once, in any order."""
    filled = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != filled:
            return False
        filled *= size
    return True


def _require_independent_of_default(dtype: object, args: object, kwargs: object) -> None:
    """Refuse a call whose result may depend on the default dtype: one without tensors, or on integers."""
    tensors = [end for leaf in leaves((args, kwargs)) if isinstance(end := end_of(leaf), torch.Tensor)]
    if not tensors or not all(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors):
        raise OperationNotAllowedError(
            f"cannot run with the default dtype {dtype}: the worker's is {torch.get_default_dtype()} for its whole "
            f"process; pass the dtype explicitly, e.g. `x.to({dtype})`, or start the worker with the same default"
        )


def _has_dense_gradients(given: object, shadows: object, result: Nested) -> bool:
    """Return whether the gradients of a call are dense: they are unless an option is True."""
    if not any(leaf is True for leaf in leaves(given)):
        return True
    made = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None]
    operands = [leaf for leaf in leaves(shadows) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    try:
        found = torch.autograd.grad(made, operands, [torch.zeros_like(leaf) for leaf in made], allow_unused=True)
    except Exception:  # noqa: BLE001  # on the meta device torch may raise any error
        return not made
    return all(gradient is None or gradient.layout is torch.strided for gradient in found)


class MetaDevice:
    """Torch's meta device; its first use imports about 800 modules."""

    def __init__(self) -> None:
        self.is_ready = False
        self._thread: threading.Thread | None = None

    def prepare(self) -> threading.Thread:
        """Load the device in a background thread, and return the thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._use, name="prepare the meta device")
            self._thread.start()
        return self._thread

    def _use(self) -> None:
        shadow = torch.empty(1, device="meta")
        shadow.add(shadow)
        self.is_ready = True


_meta_device = MetaDevice()


_modes: dict[tuple[Any, ...], str] = {}
_DTYPES = [value for value in vars(torch).values() if isinstance(value, torch.dtype)]
_FLAGS = (True, False)
_MODES = {str(word): word for word in (*_FLAGS, None, *_DTYPES)}


@functools.lru_cache(maxsize=256)
def _read_modes(modes: str) -> list[Any]:
    try:
        grad, inference, dtype, autocast = [_MODES[word] for word in modes.split(" ")]
        if (
            type(grad) is not bool
            or type(inference) is not bool
            or type(dtype) is not torch.dtype
            or autocast in _FLAGS
        ):
            raise ValueError
    except (KeyError, ValueError):
        raise SerdeError("cannot read the modes of a command: they are not torch's (malformed message)") from None
    return [grad, inference, dtype, autocast]


@contextlib.contextmanager
def _set_modes(grad: bool, inference: bool, autocast: torch.dtype | None) -> Iterator[None]:
    wanted = torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None)
    with torch.inference_mode(inference), torch.set_grad_enabled(grad), wanted:
        yield


@contextlib.contextmanager
def _own_generator() -> Iterator[None]:
    """Reseed the global generator, which most operations use, and restore its state afterwards."""
    generator = torch.default_generator
    before = generator.get_state()
    generator.seed()
    try:
        yield
    finally:
        generator.set_state(before)


_forms_of_gradients: dict[Form, Form | None] = {}
_BACKWARD = ("tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs")
_BACKWARD_METHOD = ("tensors", "gradient", "retain_graph", "create_graph", "inputs")
"""The arguments of ``torch.autograd.backward`` and ``Tensor.backward``, in order."""


def _shadow(leaf: Tensor, device: object = None) -> Tensor:
    """Return a meta tensor for a form or a local tensor, and the meta device for ``device``."""
    if isinstance(leaf, torch.Tensor):
        return leaf.to("meta")
    if type(leaf) in (torch.device, str) and str(leaf) == str(device):
        return _META
    if type(leaf) is not Form:
        return leaf
    return _connect(torch.empty_strided(leaf.shape, leaf.strides, dtype=leaf.dtype, device="meta"), leaf)


def _connect(tensor: Tensor, known: Form) -> Tensor:
    """Return a new tensor at the form's place in a graph, as a result, which can be changed in place."""
    if not known.requires_grad:
        return tensor
    if known.is_leaf:
        return tensor.requires_grad_()
    with torch.inference_mode(False), torch.enable_grad():
        return _Result.apply(torch.empty((), device=tensor.device, requires_grad=True), (tensor,))


_NAMES_META = re.compile(r"meta", re.IGNORECASE)
_ABOUT_GRAPHS = re.compile(
    r"grad can be implicitly created only for (real )?scalar outputs"
    r"|element \d+ of tensors does not require grad and does not have a grad_fn"
    r"|Trying to backward through the graph a second time.*"
    r"|One of the differentiated Tensors (does not require grad|appears to not have been used in the graph.*)"
    r"|one of the variables needed for gradient computation has been modified by an inplace operation"
    r"|Mismatch in shape: grad_output\[\d+\] has a shape of .*"
    r"|\"\w+\" not implemented for '\w+'$",
    re.DOTALL,
)
"""The errors of backward passes that quote no values. The zeros that replace a failed result have other nodes."""
_LARGEST_EXAMPLE = 1 << 26
"""The largest example, in bytes, that is written to."""


def _to_meta(leaf: Tensor) -> Nested:
    is_device = type(leaf) is torch.device or (type(leaf) is str and leaf.partition(":")[0] == "cpu")
    return _META if is_device else _shadow(leaf)


def _storages(values: Nested) -> dict[int, int]:
    """Return the sizes of the storages of all tensors; raise if one is not on the meta device."""
    storages = [leaf.untyped_storage() for leaf in leaves(values) if isinstance(leaf, torch.Tensor)]
    if any(storage.device.type != "meta" for storage in storages):
        raise NotImplementedError("a tensor is not on the meta device")
    return {storage._cdata: storage.nbytes() for storage in storages}


def _zeros(known: Form, device: object) -> Tensor:
    zeros = torch.empty_strided(known.shape, known.strides, dtype=known.dtype, device=device or known.device)
    return zeros.zero_()


class _Result(torch.autograd.Function):  # type: ignore[misc]  # torch's values pass as Any
    """Makes a tensor the result of an operation, which may be changed in place; a view of a leaf may not."""

    @staticmethod
    def forward(ctx: Any, _start: Tensor, made: tuple[Tensor]) -> Tensor:
        ctx.storage = made[0].untyped_storage()._cdata
        return made[0]

    @staticmethod
    def backward(_ctx: Any, _gradient: Tensor) -> tuple[None, None]:
        return None, None


class _Zeros(torch.autograd.Function):  # type: ignore[misc]  # torch's values pass as Any
    """Zeros that, for autograd, depend on the operands; their gradients are zeros."""

    @staticmethod
    def forward(ctx: Any, forms: Sequence[Form], device: Any, *operands: Any) -> tuple[Any, ...]:
        made = [_zeros(known, device) for known in forms]
        ctx.mark_non_differentiable(
            *[zeros for zeros, known in zip(made, forms, strict=True) if not known.requires_grad]
        )
        ctx.like = [operand.new_zeros(()).expand(operand.shape) for operand in operands]
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *_gradients: Any) -> tuple[Any, ...]:
        return (None, None, *ctx.like)


def _form_on(device: object, result: Nested) -> Form | None:
    """Return the form that a result on the meta device would have on ``device``."""
    if result.device.type != "meta" or not _is_common(result):
        return None
    return form(result.shape, result.stride(), result.dtype, device, result.requires_grad, result.is_leaf)


def _torch_functions() -> Iterator[tuple[str, Function]]:
    for functions in get_overridable_functions().values():
        for func in functions:
            yield _name_of(func) or f"{func.__module__}.{func.__name__}", func
    yield from _unlisted_functions()
    for name in sorted(_SETTERS):
        if hasattr(torch.Tensor, name):
            yield f"torch.Tensor.{name}.__set__", getattr(torch.Tensor, name).__set__


def _unlisted_functions() -> Iterator[tuple[str, Function]]:
    """Yield the functions that reach the protocol although torch does not list them."""
    for name in sorted(_UNLISTED_METHODS):
        if hasattr(torch.Tensor, name):
            yield f"torch.Tensor.{name}", getattr(torch.Tensor, name)
    for name in dir(torch):
        if name.startswith("_foreach_") or (is_inplace_name(name) and callable(getattr(torch, name))):
            yield f"torch.{name}", getattr(torch, name)
    for path in sorted(_UNLISTED_FUNCTIONS):
        func = functools.reduce(lambda owner, part: getattr(owner, part, None), path.split("."), torch)
        if func is not None:
            yield f"torch.{path}", func
    for name in sorted(_INIT_FUNCTIONS):
        yield f"torch.nn.init.{name}", getattr(torch.nn.init, name)
    yield "torch.autograd.grad", torch.autograd.grad
    yield "torch.autograd.backward", torch.autograd.backward
    yield from links.FUNCTIONS.items()


def _set_gradient(target: Tensor, gradient: Tensor) -> None:
    if type(target) is list and gradient is None:
        for tensor in target:
            tensor.grad = None
    else:
        target.grad = TorchAttributes.alias(gradient) if isinstance(gradient, torch.Tensor) else gradient


def _set_data(target: Tensor, value: Tensor) -> None:
    """Replace the data of a tensor by a part of its own memory, or by a copy.

    Tensors with the same memory must have the same version counter.
    """
    if isinstance(value, torch.Tensor):
        target.data = value.detach() if _share_memory(target, value) else value.detach().clone()
    else:
        target.data = value


def _share_memory(one: Tensor, other: Tensor) -> bool:
    is_dense = one.layout is other.layout is torch.strided and not (one.is_nested or other.is_nested)
    return is_dense and one.untyped_storage()._cdata == other.untyped_storage()._cdata


def _run_backward(
    tensor: Tensor,
    gradient: Tensor = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Nested = None,
) -> None:
    """Run a backward pass; start from a plain number without the checks that torch needs for other tensors."""
    is_number = type(tensor) in PLAIN_TYPES and not tensor.dim() and tensor.requires_grad and not tensor.is_complex()
    has_options = gradient is not None or create_graph or inputs is not None
    if _run_engine is None or not is_number or has_options or _is_transforming():
        torch.Tensor.backward(tensor, gradient, retain_graph, create_graph, inputs)
        return
    start = torch.ones_like(tensor, memory_format=torch.preserve_format)
    _run_engine((tensor,), (start,), bool(retain_graph), False, (), allow_unreachable=True, accumulate_grad=True)


_ACCUMULATE = torch._C._functions.AccumulateGrad
_WRITTEN_IN_PYTHON = torch.autograd.function.BackwardCFunction
_run_engine = run_engine
_is_transforming = torch._C._are_functorch_transforms_active


# A write to `x.data` bypasses the version counter of `x`, by which a graph notices that a tensor it saved has changed.
# Values that are written into saved public tensors would reach public gradients.
_RUNS: dict[str, Function] = {
    "torch.Tensor.backward": _run_backward,
    "torch.Tensor.grad.__set__": _set_gradient,
    "torch.Tensor.data.__get__": torch.Tensor.detach,
    "torch.Tensor.data.__set__": _set_data,
}


def _storage_of(tensor: Tensor) -> Any:
    return tensor.untyped_storage() if tensor.layout is _STRIDED else None


@contextlib.contextmanager
def _clear_growth_of(storage: Any) -> Iterator[None]:
    """Zero the memory that a block adds to a storage; in a view with strides, that is not the end of the view."""
    size = storage.nbytes()
    try:
        yield
    finally:
        if storage.nbytes() > size:
            torch.empty(0, dtype=torch.uint8).set_(storage)[size:] = 0


def _shrink(storage: Any, size: int) -> None:
    if storage.nbytes() > size:
        storage.resize_(size)


def _last(name: str) -> str:
    parts = name.split(".")
    return parts[-2] if parts[-1] in ("__get__", "__set__") else parts[-1]


def _op(name: str, func: Function) -> Op:
    last = _last(name)
    spelling: Spelling = "function"
    if name.endswith(".__get__"):
        spelling = "getter"
    elif name.endswith(".__set__"):
        spelling = "setter"
    elif name.startswith("torch.Tensor."):
        spelling = "method"
    each = next((name.removeprefix(lists).removesuffix("_") for lists in _ON_LISTS if name.startswith(lists)), None)
    op = describe_op(
        name,
        func,
        spelling,
        inplace=spelling in ("method", "function") and is_inplace_name(last),
        synonyms=_SYNONYMS if each is None else {each: f"_foreach_{each}"},
        run=_RUNS.get(name),
        each=each,
        describe=describe,
    )
    guarded = None if name in _RUNS else add_guard(op)
    return op if guarded is None else replace(op, run=guarded)
