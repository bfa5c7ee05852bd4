"""The operations that keep samples apart: for each, where the samples are in its result.

An operation that is not in ``RULES`` is refused. A rule gets the arguments, as tensors without values, and the mark of
each argument; it returns the mark of the results, or raises ``CoupledError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import torch

from syft_core.hook.rules import leaves
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_torch.federated.private_steps.marks import (
    LENGTH,
    LENGTH_OF_TRIAL,
    SHARED,
    Batched,
    CoupledError,
    Mark,
    Reduced,
    is_number_mark,
)


@dataclass
class Use:
    """One step: the arguments of an operation, their marks, and its result."""

    name: str
    args: Args
    kwargs: Kwargs
    marked_args: Args
    marked_kwargs: Kwargs
    result: Nested
    is_guarded: bool = field(default=False)
    """Whether the operation could fail because of a value of a sample."""

    @property
    def marks(self) -> tuple[Args, Kwargs]:
        """The marks of the arguments."""
        return self.marked_args, self.marked_kwargs

    def bind(self, names: str) -> tuple[Kwargs, dict[str, Mark]]:
        """Return the arguments by name, and the marks of those that have one."""
        order = names.split()
        if len(self.args) > len(order):
            raise CoupledError("has more arguments than are known here", _SIMPLER)
        values = {**dict(zip(order, self.args, strict=False)), **self.kwargs}
        marks = {**dict(zip(order, self.marked_args, strict=False)), **self.marked_kwargs}
        if "axis" in values and "dim" in order:
            values["dim"], marks["dim"] = values.pop("axis"), marks.pop("axis")
        unknown = values.keys() - set(order)
        if unknown:
            raise CoupledError(f"has the argument {min(unknown)!r}, which is not known here", _SIMPLER)
        return values, marks

    def tensors(self) -> list[tuple[Tensor, Mark]]:
        """Return all tensors among the arguments, with their marks."""
        values, marks = leaves((self.args, self.kwargs)), leaves((self.marked_args, self.marked_kwargs))
        return [(value, mark) for value, mark in zip(values, marks, strict=True) if isinstance(value, torch.Tensor)]

    @property
    def results(self) -> list[Tensor]:
        """The tensors that it returns."""
        return [leaf for leaf in leaves(self.result) if isinstance(leaf, torch.Tensor)]

    def guard(self, *marks: Mark) -> None:
        """Note that the operation fails for some values of operands with these marks."""
        found = [mark for mark in marks if isinstance(mark, Batched)]
        if any(mark.dim for mark in found):
            raise CoupledError("has an input whose first dimension is not that of the samples", "move it to the front")
        self.is_guarded = self.is_guarded or bool(found)

    def require_no_lengths(self) -> None:
        """Raise if a number among the arguments depends on the length of the batch."""
        if any(map(is_number_mark, leaves((self.marked_args, self.marked_kwargs)))):
            raise CoupledError("computes with the length of the batch", "use a mean, e.g. `.mean()`")


Marks: TypeAlias = "Mark | tuple[Mark, ...]"
Rule = Callable[[Use], Marks]
_SIMPLER = "write it with simpler operations"
_APART = "compute each sample by itself, and end with a plain mean"


def _refuse_reduced(marks: Iterable[object]) -> None:
    if any(isinstance(mark, Reduced) for mark in marks):
        raise CoupledError("uses a mean or a sum over the batch", "average over the batch only once, at the end")


def _is_plain(values: Kwargs, **expected: Nested) -> bool:
    return all(values.get(name, default) in (default, None) for name, default in expected.items())


# --- element by element


def _align(use: Use) -> Batched | None:
    """Return the mark of the operands that have samples, with the distance of their dimension from the end."""
    use.require_no_lengths()
    found = use.tensors()
    _refuse_reduced(mark for _, mark in found)
    places = {mark.at(tensor.dim() - mark.dim) for tensor, mark in found if isinstance(mark, Batched)}
    if len(places) > 1:
        raise CoupledError("combines each sample with others", "give both operands the same number of dimensions")
    place = next(iter(places), None)
    if place is not None:
        for tensor, mark in found:
            if mark == SHARED and tensor.dim() >= place.dim and tensor.shape[-place.dim] != 1:
                raise CoupledError("uses a tensor with one part for each place in a batch", _APART)
    return place


def _follow_elements(use: Use) -> Mark:
    place = _align(use)
    if place is None:
        return SHARED
    return place.at(use.results[0].dim() - place.dim)


def _follow_division(use: Use) -> Mark:
    if any(not result.is_floating_point() for result in use.results):
        raise CoupledError("divides integers, which fails for some values", "divide floats: `x.float()`")
    return _follow_elements(use)


def _follow_sum(use: Use) -> Mark:
    """Follow `x + y` and `x - y`, also of means over the batch."""
    marks = [mark for _, mark in use.tensors()]
    kinds = {mark.kind for mark in marks if isinstance(mark, Reduced)}
    if not kinds:
        return _follow_elements(use)
    use.require_no_lengths()
    if len(kinds) > 1 or any(isinstance(mark, Batched) for mark in marks):
        raise CoupledError("combines a mean over the batch with samples, or with a sum", _APART)
    has_penalty = any(mark == SHARED for mark in marks)
    if has_penalty and kinds == {"sum"}:
        raise CoupledError("adds a penalty to a sum over the batch", "use a mean, or the optimizer's `weight_decay`")
    return Reduced(*kinds)


def _follow_product(use: Use) -> Mark:
    """Follow `x * y` and `x / y`, also of a mean over the batch and what is the same for all samples."""
    found = use.tensors()
    reduced = [mark for _, mark in found if isinstance(mark, Reduced)]
    if not reduced:
        return _follow_division(use) if use.name.rpartition(".")[2] in _DIVISIONS else _follow_elements(use)
    use.require_no_lengths()
    others = (*use.marked_args[1:], *use.marked_kwargs.values())
    divisors = others if use.name.rpartition(".")[2] in _DIVISIONS else ()
    if any(isinstance(mark, Reduced) for mark in divisors) or use.name.endswith("__rtruediv__"):
        raise CoupledError("divides by a sum over the batch", "use a plain mean, e.g. without weights")
    if len(reduced) > 1 or any(isinstance(mark, Batched) for _, mark in found):
        raise CoupledError("combines a mean over the batch with samples", _APART)
    if use.kwargs.get("rounding_mode") is not None:
        raise CoupledError("rounds a mean over the batch", _APART)
    return reduced[0]


_DIVISIONS = frozenset(["div", "divide", "true_divide", "__truediv__", "__rtruediv__"])


def _follow_negation(use: Use) -> Mark:
    marks = [mark for _, mark in use.tensors()]
    return marks[0] if isinstance(marks[0], Reduced) else _follow_elements(use)


def _follow_fill(use: Use) -> Mark:
    """Follow a new tensor: if it has the length of the batch, each sample has its own part."""
    sizes = use.marked_args[1:] if use.name.rpartition(".")[2].startswith("new_") else use.marked_args
    first = sizes[0] if sizes else use.marked_kwargs.get("size", ())
    flat = list(first) if isinstance(first, list | tuple) else list(sizes)
    numbers = sum(map(is_number_mark, leaves((use.marked_args, use.marked_kwargs))))
    if not numbers:
        return SHARED
    places = [place for place, mark in enumerate(flat) if is_number_mark(mark)]
    if numbers != 1 or len(places) != 1 or flat[places[0]] is not LENGTH:
        raise CoupledError("makes a tensor whose form depends on the length of the batch", _APART)
    return Batched(places[0])


# --- along dimensions


def _find_dims(dim: Nested, tensor: Tensor) -> set[int] | None:
    """Return dimensions as positive numbers; None for all."""
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return None
    found = dim if isinstance(dim, list | tuple) else (dim,)
    if not all(type(each) is int for each in found):
        raise CoupledError("has a dimension that is not a number", "use `torch.maximum`, or give `dim=`")
    return {each % max(tensor.dim(), 1) for each in found}


def _drop_dims(mark: Batched, dims: set[int], keepdim: bool) -> Batched:
    return mark if keepdim else mark.at(mark.dim - sum(dim < mark.dim for dim in dims))


def _follow_mean(use: Use) -> Mark:
    """Follow a mean or a sum, which may be that over the samples."""
    use.require_no_lengths()
    values, marks = use.bind("input dim keepdim dtype")
    mark = marks["input"]
    if not isinstance(mark, Batched):
        return mark
    dims = _find_dims(values.get("dim"), values["input"])
    if dims is None or mark.dim in dims:
        return Reduced("mean" if use.name.endswith("mean") else "sum")
    return _drop_dims(mark, dims, bool(values.get("keepdim")))


def _along(names: str, keeps: bool = False) -> Rule:
    """Return the rule of an operation along dimensions that must not be that of the samples."""

    def follow(use: Use) -> Mark:
        use.require_no_lengths()
        values, marks = use.bind(names)
        mark = marks["input"]
        _refuse_reduced(marks.values())
        if not isinstance(mark, Batched):
            return SHARED
        dims = _find_dims(values.get("dim"), values["input"])
        short = use.name.rpartition(".")[2]
        if dims is None or mark.dim in dims:
            raise CoupledError("may compute over the batch", f"give another dimension, e.g. `{short}(..., dim=1)`")
        return _drop_dims(mark, dims, keeps or bool(values.get("keepdim")))

    return follow


# --- forms


def _find_sizes(use: Use, skip: int = 1) -> tuple[list[Nested], list[object]]:
    values, marks = list(use.args[skip:]), list(use.marked_args[skip:])
    for name in ("shape", "size", "sizes"):
        if name in use.kwargs:
            values, marks = [use.kwargs[name]], [use.marked_kwargs[name]]
    if len(values) == 1 and isinstance(values[0], list | tuple):
        values, marks = list(values[0]), list(marks[0])
    if not all(type(value) is int for value in values):
        raise CoupledError("has an argument that is not a size", _SIMPLER)
    return values, marks


def _follow_view(use: Use) -> Mark:
    """Follow a new shape, which must keep the dimension of the samples and all before it."""
    mark: Mark = use.marked_args[0]
    tensor, (result,) = use.args[0], use.results
    sizes, marks = _find_sizes(use)
    if not isinstance(mark, Batched):
        use.require_no_lengths()
        return mark
    others = [each for place, each in enumerate(marks) if place != mark.dim]
    is_known = len(marks) > mark.dim and (marks[mark.dim] is LENGTH or sizes[mark.dim] == -1)
    if any(map(is_number_mark, others)) or not is_known:
        raise CoupledError("mixes the dimension of the samples with others", _KEEP)
    if mark.dim:
        if mark.count != 1 or tuple(result.shape[: mark.dim + 1]) != tuple(tensor.shape[: mark.dim + 1]):
            raise CoupledError("mixes the dimension of the samples with others", _KEEP)
        return mark
    size, inner = tensor.numel() // LENGTH_OF_TRIAL, prod(result.shape[1:])
    if inner == 0 or size % inner or result.shape[0] != LENGTH_OF_TRIAL * (size // inner):
        raise CoupledError("mixes the dimension of the samples with others", _KEEP)
    return Batched(0, size // inner)


_KEEP = "keep it: `x.flatten(1)`, `x.view(x.shape[0], -1)`"


def _follow_flatten(use: Use) -> Mark:
    use.require_no_lengths()
    values, marks = use.bind("input start_dim end_dim")
    mark, tensor = marks["input"], values["input"]
    if not isinstance(mark, Batched):
        return mark
    start, end = values.get("start_dim", 0) % tensor.dim(), values.get("end_dim", -1) % tensor.dim()
    merged = [side for place, side in enumerate(tensor.shape) if start <= place <= end and place != mark.dim]
    if start <= mark.dim <= end:
        if start < mark.dim and prod(merged) != 1:
            raise CoupledError("mixes the dimension of the samples with others", "flatten the others: `x.flatten(1)`")
        return Batched(start, mark.count * prod(merged))
    return mark.at(mark.dim - (end - start if end < mark.dim else 0))


def _follow_unflatten(use: Use) -> Mark:
    use.require_no_lengths()
    values, marks = use.bind("input dim sizes")
    mark, tensor = marks["input"], values["input"]
    if not isinstance(mark, Batched):
        return mark
    dim = values["dim"] % tensor.dim()
    if dim == mark.dim:
        raise CoupledError("divides the dimension of the samples", _APART)
    return mark.at(mark.dim + (len(values["sizes"]) - 1 if dim < mark.dim else 0))


def _follow_swap(use: Use) -> Mark:
    use.require_no_lengths()
    short = use.name.removesuffix(".__get__").rpartition(".")[2]
    mark: Mark = use.marked_args[0]
    tensor = use.args[0]
    if not isinstance(mark, Batched):
        return mark
    if short in ("T", "mT", "t", "H", "mH") and tensor.dim() >= 2:
        first, second = tensor.dim() - 2, tensor.dim() - 1
        if short in ("T", "t", "H") and tensor.dim() != 2:
            raise CoupledError("reverses more than two dimensions", "use `.permute(...)`")
    else:
        pair = [*use.args[1:], *use.kwargs.values()]
        if len(pair) != 2:
            raise CoupledError("has arguments that are not known here", _SIMPLER)
        first, second = (each % tensor.dim() for each in pair)
    return mark.at({first: second, second: first}.get(mark.dim, mark.dim))


def _follow_permute(use: Use) -> Mark:
    use.require_no_lengths()
    mark: Mark = use.marked_args[0]
    tensor = use.args[0]
    dims = use.kwargs.get("dims", use.args[1:])
    dims = dims[0] if len(dims) == 1 and isinstance(dims[0], list | tuple) else dims
    return mark.at([each % tensor.dim() for each in dims].index(mark.dim)) if isinstance(mark, Batched) else mark


def _follow_squeeze(use: Use) -> Mark:
    use.require_no_lengths()
    values, marks = use.bind("input dim")
    mark, tensor = marks["input"], values["input"]
    if not isinstance(mark, Batched):
        return mark
    dims = _find_dims(values.get("dim"), tensor)
    if dims is None or mark.dim in dims:
        raise CoupledError("would remove the dimension of a batch of one sample", "name another: `x.squeeze(-1)`")
    return mark.at(mark.dim - sum(dim < mark.dim and tensor.shape[dim] == 1 for dim in dims))


def _follow_unsqueeze(use: Use) -> Mark:
    use.require_no_lengths()
    values, marks = use.bind("input dim")
    mark, tensor = marks["input"], values["input"]
    if not isinstance(mark, Batched):
        return mark
    return mark.at(mark.dim + (values["dim"] % (tensor.dim() + 1) <= mark.dim))


def _follow_expand(use: Use) -> Mark:
    mark: Mark = use.marked_args[0]
    tensor = use.args[0]
    sizes, marks = _find_sizes(use)
    _refuse_reduced([mark])
    places = [place for place, each in enumerate(marks) if is_number_mark(each)]
    if any(marks[place] is not LENGTH for place in places) or len(places) > 1:
        raise CoupledError("computes with the length of the batch", _APART)
    lead = len(sizes) - tensor.dim()
    if not isinstance(mark, Batched):
        if places and places[0] >= lead and tensor.shape[places[0] - lead] != 1:
            raise CoupledError("uses a tensor with one part for each place in a batch", _APART)
        return Batched(places[0]) if places else SHARED
    dim = mark.dim + lead
    if places not in ([], [dim]) or (not places and sizes[dim] != -1) or (places and mark.count != 1):
        raise CoupledError("expands the dimension of the samples", "give -1 for it")
    return mark.at(dim)


def _follow_index(use: Use) -> Mark:
    """Follow `x[...]` with slices and integers, which must keep all samples."""
    mark: Mark = use.marked_args[0]
    tensor, key = use.args[:2]
    parts = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(leaf, torch.Tensor | bool | list) for leaf in parts):
        raise CoupledError("picks elements by a tensor or a list", "use slices, or `torch.where`")
    use.require_no_lengths()
    if not isinstance(mark, Batched):
        return mark
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    if Ellipsis not in parts:
        parts.append(Ellipsis)
    source = made = 0
    for part in parts:
        if part is None:
            made += 1
            continue
        count = tensor.dim() - taken if part is Ellipsis else 1
        if source <= mark.dim < source + count:
            if part is not Ellipsis and part != slice(None):
                raise CoupledError("picks some of the samples", "keep all: `x[:, ...]`")
            return mark.at(made + mark.dim - source)
        source += count
        made += 0 if type(part) is int else count
    raise CoupledError("has an index that is not known here", "use slices")


def _follow_select(names: str, removes: bool) -> Rule:
    def follow(use: Use) -> Mark:
        use.require_no_lengths()
        values, marks = use.bind(names)
        mark, tensor = marks["input"], values["input"]
        _refuse_reduced([mark])
        if not isinstance(mark, Batched):
            return SHARED
        dim = values.get("dim", 0) % tensor.dim()
        if dim == mark.dim:
            raise CoupledError("divides the batch, or picks some of the samples", "give another dimension")
        return mark.at(mark.dim - (removes and dim < mark.dim))

    return follow


def _follow_join(use: Use) -> Mark:
    use.require_no_lengths()
    values, _ = use.bind("tensors dim")
    tensors, is_stack = use.tensors(), use.name.endswith("stack")
    marks = {mark for _, mark in tensors}
    _refuse_reduced(marks)
    if marks == {SHARED}:
        return SHARED
    if len(marks) > 1 or len({tensor.dim() for tensor, _ in tensors}) > 1:
        raise CoupledError("joins samples with what is the same for all", "expand it first: `y.expand(len(x), -1)`")
    (mark,) = marks
    dim = values.get("dim", 0) % (tensors[0][0].dim() + is_stack)
    if not isinstance(mark, Batched) or (dim == mark.dim and not is_stack):
        raise CoupledError("joins batches", "join along another dimension")
    return mark.at(mark.dim + (is_stack and dim <= mark.dim))


# --- layers


def _layer(names: str, most: int | None = None, sides: int | None = None) -> Rule:
    """Return the rule of a layer: its weights are the same for all samples, and its input has them in front."""

    def follow(use: Use) -> Mark:
        use.require_no_lengths()
        values, marks = use.bind(names)
        mark, tensor = marks.pop("input"), values["input"]
        if any(each != SHARED for each in leaves(list(marks.values()))):
            raise CoupledError("has weights that depend on the samples", _APART)
        if mark == SHARED:
            return SHARED
        if mark != Batched(0) or (sides is not None and tensor.dim() != sides + 2) or tensor.dim() < 2:
            raise CoupledError("has an input whose first dimension is not that of the samples", "move it to the front")
        return mark if most is None or tensor.dim() > most else _not_in_front()

    return follow


def _not_in_front() -> Mark:
    raise CoupledError("computes over the dimension of the samples", _APART)


def _follow_linear(use: Use) -> Mark:
    use.require_no_lengths()
    values, marks = use.bind("input weight bias")
    mark, tensor = marks.pop("input"), values["input"]
    if any(each != SHARED for each in marks.values()):
        raise CoupledError("has weights that depend on the samples", _APART)
    _refuse_reduced([mark])
    if isinstance(mark, Batched) and (tensor.dim() < 2 or mark.dim == tensor.dim() - 1):
        raise CoupledError("computes over the dimension of the samples", "give each sample a row: `x.unsqueeze(1)`")
    return mark


def _follow_embedding(use: Use) -> Mark:
    use.require_no_lengths()
    values, marks = use.bind("input weight padding_idx max_norm norm_type scale_grad_by_freq sparse")
    if values.get("max_norm") is not None or values.get("scale_grad_by_freq"):
        raise CoupledError("changes its weights, or counts indices in the batch", "leave out `max_norm`")
    mark = marks["input"]
    if marks["weight"] != SHARED:
        raise CoupledError("has weights that depend on the samples", _APART)
    _refuse_reduced([mark])
    use.guard(mark)
    return mark


def _follow_layer_norm(use: Use) -> Mark:
    use.require_no_lengths()
    values, marks = use.bind("input normalized_shape weight bias eps cudnn_enable")
    mark, tensor = marks["input"], values["input"]
    if any(marks.get(name, SHARED) != SHARED for name in ("weight", "bias")):
        raise CoupledError("has weights that depend on the samples", _APART)
    _refuse_reduced([mark])
    if isinstance(mark, Batched) and mark.dim >= tensor.dim() - len(values["normalized_shape"]):
        raise CoupledError("computes over the dimension of the samples", _APART)
    return mark


def _follow_batch_norm(use: Use) -> Marks:
    values, _ = use.bind("input running_mean running_var weight bias training momentum eps")
    if values.get("training"):
        raise CoupledError("computes over the batch", "replace it, e.g. by `nn.GroupNorm`, or freeze it with `.eval()`")
    return _layer("input running_mean running_var weight bias training momentum eps")(use)


def _follow_instance_norm(use: Use) -> Marks:
    names = "input running_mean running_var weight bias use_input_stats momentum eps"
    values, _ = use.bind(names)
    if values.get("running_mean") is not None:
        raise CoupledError("changes running statistics", "pass `track_running_stats=False`")
    return _layer(names)(use)


def _pool(names: str, sides: int) -> Rule:
    return _layer(names, most=sides)


def _follow_pad(use: Use) -> Mark:
    use.require_no_lengths()
    values, marks = use.bind("input pad mode value")
    mark, tensor = marks["input"], values["input"]
    _refuse_reduced([mark])
    if isinstance(mark, Batched) and mark.dim >= tensor.dim() - len(values["pad"]) // 2:
        raise CoupledError("pads the dimension of the samples", _APART)
    return mark


def _follow_matmul(use: Use) -> Mark:
    """Follow a product of matrices, whose samples must be in a dimension that is neither summed nor paired."""
    use.require_no_lengths()
    (left, first), (right, second) = use.tensors()
    _refuse_reduced([first, second])
    result = use.results[0]
    if isinstance(first, Batched) and isinstance(second, Batched):
        place = left.dim() - first.dim
        if place < 3 or first.at(place) != second.at(right.dim() - second.dim):
            raise CoupledError("combines each sample with others", "use `(x * y).sum(-1)` for rows of two batches")
        return first.at(result.dim() - place)
    if isinstance(first, Batched):
        place = left.dim() - first.dim
        is_apart = place > 2 or (place == 2 and right.dim() <= 2)
        if not is_apart or _has_length(right, place):
            raise CoupledError("computes over the dimension of the samples", _APART)
        return first.at(result.dim() - place if right.dim() > 1 else first.dim)
    if isinstance(second, Batched):
        place = right.dim() - second.dim
        if place < 3 or _has_length(left, place) or left.dim() < 2:
            raise CoupledError("computes over the dimension of the samples", _APART)
        return second.at(result.dim() - place)
    return SHARED


def _has_length(tensor: Tensor, place: int) -> bool:
    """Return whether a tensor that is the same for all samples has a dimension of their own."""
    return place > 2 and tensor.dim() >= place and tensor.shape[-place] != 1


def _follow_einsum(use: Use) -> Mark:
    use.require_no_lengths()
    equation = str(use.args[0]).replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    operands, terms = use.tensors(), inputs.split(",")
    _refuse_reduced(mark for _, mark in operands)
    if not arrow or "." in equation or len(terms) != len(operands):
        raise CoupledError("has an equation that is not known here", "write all letters, and what they become")
    letters = {term[mark.dim] for term, (_, mark) in zip(terms, operands, strict=True) if isinstance(mark, Batched)}
    if not letters:
        return SHARED
    (letter, *others) = letters
    is_merged = any(isinstance(mark, Batched) and mark.count != 1 for _, mark in operands)
    elsewhere = any(
        letter in (term[: mark.dim] + term[mark.dim + 1 :] if isinstance(mark, Batched) else term)
        for term, (_, mark) in zip(terms, operands, strict=True)
    )
    if others or is_merged or elsewhere or letter not in output:
        raise CoupledError("combines each sample with others", _APART)
    return Batched(output.index(letter))


def _follow_attention(use: Use) -> Mark:
    """Follow scaled dot-product attention of tensors with the samples in front."""
    use.require_no_lengths()
    names = "query key value attn_mask dropout_p is_causal scale enable_gqa"
    values, marks = use.bind(names)
    three = [marks[name] for name in ("query", "key", "value")]
    if three == [SHARED] * 3:
        return SHARED
    sides = {values[name].dim() for name in ("query", "key", "value")}
    if three != [Batched(0)] * 3 or len(sides) > 1 or min(sides) < 3:
        raise CoupledError("has an input whose first dimension is not that of the samples", _APART)
    mask, mark = values.get("attn_mask"), marks.get("attn_mask", SHARED)
    if mask is None:
        return Batched(0)
    if mark != SHARED and not (mark == Batched(0) and mask.dim() == values["query"].dim()):
        raise CoupledError("has a mask that combines samples", _APART)
    if mark == SHARED and mask.dim() > values["query"].dim() - 1 and mask.shape[0] != 1:
        raise CoupledError("has a mask for each place in a batch", _APART)
    return Batched(0)


def _follow_multi_head(use: Use) -> Mark:
    """Follow the attention of `nn.MultiheadAttention`, whose samples are in dimension 1."""
    use.require_no_lengths()
    names = (
        "query key value embed_dim_to_check num_heads in_proj_weight in_proj_bias bias_k bias_v add_zero_attn "
        "dropout_p out_proj_weight out_proj_bias training key_padding_mask need_weights attn_mask "
        "use_separate_proj_weight q_proj_weight k_proj_weight v_proj_weight static_k static_v average_attn_weights "
        "is_causal"
    )
    values, marks = use.bind(names)
    three = [marks.pop(name) for name in ("query", "key", "value")]
    if values.get("need_weights", True):
        raise CoupledError("also returns its weights", "pass `need_weights=False`")
    if three != [Batched(1)] * 3 or values["query"].dim() != 3 or any(mark != SHARED for mark in marks.values()):
        raise CoupledError("has an input whose batch is not the one of its query", "pass `batch_first=True`, no masks")
    mask = values.get("attn_mask")
    if mask is not None and mask.dim() != 2:
        raise CoupledError("has a mask for each place in a batch", "pass a mask with two dimensions")
    return Batched(1)


def _follow_recurrent(use: Use) -> tuple[Mark, ...]:
    """Follow a recurrent layer, whose states have the samples in dimension 1."""
    use.require_no_lengths()
    names = "input hx params has_biases num_layers dropout train bidirectional batch_first"
    values, marks = use.bind(names)
    first = 0 if values["batch_first"] else 1
    states = leaves(marks["hx"])
    others = leaves([mark for name, mark in marks.items() if name not in ("input", "hx")])
    is_known = marks["input"] == Batched(first) and values["input"].dim() == 3
    if not is_known or any(mark not in (SHARED, Batched(1)) for mark in states) or any(m != SHARED for m in others):
        raise CoupledError("has an input or a state whose samples are not in the usual dimension", _APART)
    return Batched(first), *[Batched(1)] * len(states)


def _loss(names: str, has_classes: bool = False) -> Rule:
    """Return the rule of a loss that is a plain mean or sum of the losses of the samples."""

    def follow(use: Use) -> Mark:
        use.require_no_lengths()
        values, marks = use.bind(names)
        if not _is_plain(values, size_average=None, reduce=None):
            raise CoupledError("has the arguments `size_average` or `reduce`", 'pass `reduction="mean"`')
        if has_classes:
            return _follow_classes(use, values, marks)
        if values.get("weight") is not None and not use.name.rpartition(".")[2].startswith("binary"):
            raise CoupledError("has weights, so its mean depends on all samples", "leave them out")
        inner = {"input", "target", "weight", "pos_weight"} & values.keys()
        tensors = [values[name] for name in sorted(inner) if isinstance(values[name], torch.Tensor)]
        found = [marks[name] for name in sorted(inner) if isinstance(values[name], torch.Tensor)]
        shape = torch.broadcast_shapes(*[tensor.shape for tensor in tensors])
        place = _align(Use(use.name, tuple(tensors), {}, tuple(found), {}, torch.empty(shape, device="meta")))
        if use.name.endswith("binary_cross_entropy"):
            use.guard(*found)
        if values.get("reduction") == "batchmean" and marks["input"] != Batched(0):
            raise CoupledError("has the reduction 'batchmean' of another dimension", 'pass `reduction="mean"`')
        return SHARED if place is None else _reduce(values, place.at(len(shape) - place.dim))

    return follow


def _follow_classes(use: Use, values: Kwargs, marks: dict[str, Mark]) -> Mark:
    scores, target = values["input"], values["target"]
    if values.get("weight") is not None:
        raise CoupledError("has class weights, so its mean depends on all labels", "leave them out")
    if values.get("ignore_index", -100) != -100:
        raise CoupledError("has `ignore_index`, so its mean depends on all labels", "leave out such samples")
    mark = marks["input"]
    if not isinstance(mark, Batched) or mark.dim or marks["target"] != mark or scores.dim() < 2:
        raise CoupledError("has an input or target whose first dimension is not that of the samples", _APART)
    if not target.is_floating_point():
        use.guard(mark)
    return _reduce(values, mark)


def _reduce(values: Kwargs, mark: Batched) -> Mark:
    kind = values.get("reduction", "mean")
    if kind == "none":
        return mark
    if kind not in ("mean", "sum", "batchmean"):
        raise CoupledError(f"has the reduction {kind!r}", 'pass `reduction="mean"`')
    return Reduced("sum" if kind == "sum" else "mean")


def _follow_gather(use: Use) -> Mark:
    use.require_no_lengths()
    values, marks = use.bind("input dim index sparse_grad")
    mark, tensor = marks["input"], values["input"]
    if mark == marks["index"] == SHARED:
        return SHARED
    if not isinstance(mark, Batched) or marks["index"] != mark or values["dim"] % tensor.dim() == mark.dim:
        raise CoupledError("picks elements of other samples", _APART)
    use.guard(mark)
    return mark


def _follow_one_hot(use: Use) -> Mark:
    use.require_no_lengths()
    values, marks = use.bind("tensor num_classes")
    if values.get("num_classes", -1) < 1:
        raise CoupledError("finds the number of classes in the batch", "pass `num_classes`")
    _refuse_reduced(marks.values())
    use.guard(marks["tensor"])
    return marks["tensor"]


# --- the table


def _spell(names: str) -> list[str]:
    """Return how operations may be named: as functions, methods, and functions of `torch.nn.functional`."""
    return [f"{place}.{name}" for name in names.split() for place in ("torch", "torch.Tensor", "torch.nn.functional")]


_ELEMENTS = (
    "relu relu6 elu selu celu gelu silu mish leaky_relu sigmoid tanh hardtanh hardswish hardsigmoid softplus softsign "
    "logsigmoid tanhshrink hardshrink softshrink threshold exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square abs "
    "absolute sign sgn sin cos tan asin acos atan sinh cosh asinh acosh atanh erf erfc erfinv ceil floor round trunc "
    "frac reciprocal logit sinc lgamma digamma pow __pow__ __rpow__ atan2 hypot maximum minimum fmax fmin lerp addcmul "
    "addcdiv clamp clip clamp_min clamp_max where masked_fill nan_to_num isnan isinf isfinite eq ne lt le gt ge __eq__ "
    "__ne__ __lt__ __le__ __gt__ __ge__ logical_and logical_or logical_not logical_xor __and__ __or__ __xor__ "
    "__invert__ float double long int bool type_as detach clone contiguous dropout alpha_dropout zeros_like ones_like "
    "full_like rand_like randn_like logaddexp xlogy heaviside positive deg2rad rad2deg"
)
_CASTS = "to type"

RULES: dict[str, Rule] = {
    **dict.fromkeys(_spell(_ELEMENTS), _follow_elements),
    **dict.fromkeys(_spell(_CASTS), _follow_elements),
    **dict.fromkeys(_spell("remainder fmod floor_divide __mod__ __floordiv__ __rfloordiv__"), _follow_division),
    **dict.fromkeys(_spell("add sub subtract rsub __add__ __radd__ __sub__ __rsub__"), _follow_sum),
    **dict.fromkeys(_spell(f"mul multiply __mul__ __rmul__ {' '.join(sorted(_DIVISIONS))}"), _follow_product),
    **dict.fromkeys(_spell("neg negative"), _follow_negation),
    **dict.fromkeys(
        _spell("zeros ones full rand randn new_zeros new_ones new_full"), _follow_fill
    ),
    **dict.fromkeys(_spell("mean sum"), _follow_mean),
    **dict.fromkeys(
        _spell("max min amax amin prod logsumexp all any argmax argmin nansum nanmean"),
        _along("input dim keepdim dtype"),
    ),
    **dict.fromkeys(_spell("median"), _along("input dim keepdim")),
    **dict.fromkeys(_spell("std var"), _along("input dim unbiased keepdim correction")),
    **dict.fromkeys(_spell("norm"), _along("input p dim keepdim out dtype")),
    **dict.fromkeys(["torch.functional.norm"], _along("input p dim keepdim out dtype")),
    **dict.fromkeys(_spell("cumsum cumprod"), _along("input dim dtype", keeps=True)),
    **dict.fromkeys(["torch.linalg.vector_norm"], _along("input ord dim keepdim dtype")),
    **dict.fromkeys(_spell("softmax log_softmax"), _along("input dim _stacklevel dtype", keeps=True)),
    **dict.fromkeys(["torch.softmax", "torch.log_softmax", "torch.Tensor.softmax", "torch.Tensor.log_softmax"],
                    _along("input dim dtype", keeps=True)),
    **dict.fromkeys(["torch.nn.functional.normalize"], _along("input p dim eps out", keeps=True)),
    **dict.fromkeys(["torch.nn.functional.glu"], _along("input dim", keeps=True)),
    **dict.fromkeys(_spell("view reshape"), _follow_view),
    **dict.fromkeys(_spell("flatten"), _follow_flatten),
    **dict.fromkeys(_spell("unflatten"), _follow_unflatten),
    **dict.fromkeys(_spell("transpose swapaxes swapdims t"), _follow_swap),
    **dict.fromkeys([f"torch.Tensor.{name}.__get__" for name in ("T", "mT")], _follow_swap),
    **dict.fromkeys(_spell("permute"), _follow_permute),
    **dict.fromkeys(_spell("squeeze"), _follow_squeeze),
    **dict.fromkeys(_spell("unsqueeze"), _follow_unsqueeze),
    **dict.fromkeys(_spell("expand"), _follow_expand),
    "torch.Tensor.__getitem__": _follow_index,
    **dict.fromkeys(_spell("select"), _follow_select("input dim index", removes=True)),
    **dict.fromkeys(_spell("narrow"), _follow_select("input dim start length", removes=False)),
    **dict.fromkeys(_spell("unbind"), _follow_select("input dim", removes=True)),
    **dict.fromkeys(_spell("chunk"), _follow_select("input chunks dim", removes=False)),
    **dict.fromkeys(
        [*_spell("split"), "torch.functional.split"], _follow_select("input split_size dim", removes=False)
    ),
    **dict.fromkeys(_spell("cat concat stack"), _follow_join),
    **dict.fromkeys(_spell("linear"), _follow_linear),
    **{name: _layer("input weight bias stride padding dilation groups", sides=sides)
       for sides in (1, 2, 3) for name in _spell(f"conv{sides}d")},
    **{name: _layer("input weight bias stride padding output_padding groups dilation", sides=sides)
       for sides in (1, 2, 3) for name in _spell(f"conv_transpose{sides}d")},
    "torch.nn.functional.embedding": _follow_embedding,
    **dict.fromkeys(_spell("layer_norm rms_norm"), _follow_layer_norm),
    **dict.fromkeys(_spell("group_norm"), _layer("input num_groups weight bias eps cudnn_enabled")),
    "torch.nn.functional.batch_norm": _follow_batch_norm,
    "torch.nn.functional.instance_norm": _follow_instance_norm,
    **dict.fromkeys(_spell("prelu"), _layer("input weight")),
    **dict.fromkeys(_spell("dropout1d dropout2d dropout3d feature_dropout feature_alpha_dropout"),
                    _layer("input p training inplace")),
    **{name: _pool("input kernel_size stride padding dilation ceil_mode return_indices", sides)
       for sides in (1, 2, 3) for name in _spell(f"max_pool{sides}d")},
    **{name: _pool("input kernel_size stride padding ceil_mode count_include_pad divisor_override", sides)
       for sides in (1, 2, 3) for name in _spell(f"avg_pool{sides}d")},
    **{name: _pool("input output_size", sides)
       for sides in (1, 2, 3) for name in _spell(f"adaptive_avg_pool{sides}d adaptive_max_pool{sides}d")},
    **dict.fromkeys(_spell("pixel_shuffle pixel_unshuffle"), _pool("input factor", 3)),
    **dict.fromkeys(_spell("interpolate"),
                    _pool("input size scale_factor mode align_corners recompute_scale_factor antialias", 2)),
    **dict.fromkeys(_spell("pad"), _follow_pad),
    **dict.fromkeys(_spell("matmul bmm mm mv __matmul__"), _follow_matmul),
    "torch.functional.einsum": _follow_einsum,
    "torch.nn.functional.scaled_dot_product_attention": _follow_attention,
    "torch.nn.functional.multi_head_attention_forward": _follow_multi_head,
    **dict.fromkeys(["torch.gru", "torch.lstm", "torch.rnn_tanh", "torch.rnn_relu"], _follow_recurrent),
    **dict.fromkeys(_spell("gather"), _follow_gather),
    **dict.fromkeys(_spell("one_hot"), _follow_one_hot),
    **{f"torch.nn.functional.{name}": rule for name, rule in {
        "cross_entropy": _loss(
            "input target weight size_average ignore_index reduce reduction label_smoothing", has_classes=True
        ),
        "nll_loss": _loss("input target weight size_average ignore_index reduce reduction", has_classes=True),
        "mse_loss": _loss("input target size_average reduce reduction weight"),
        "l1_loss": _loss("input target size_average reduce reduction weight"),
        "smooth_l1_loss": _loss("input target size_average reduce reduction beta"),
        "huber_loss": _loss("input target reduction delta weight"),
        "binary_cross_entropy": _loss("input target weight size_average reduce reduction"),
        "binary_cross_entropy_with_logits": _loss(
            "input target weight size_average reduce reduction pos_weight"
        ),
        "kl_div": _loss("input target size_average reduce reduction log_target"),
        "poisson_nll_loss": _loss("input target log_input full size_average eps reduce reduction"),
        "soft_margin_loss": _loss("input target size_average reduce reduction"),
    }.items()},
}  # fmt: skip
"""What each operation does with samples."""


def find_advice(name: str) -> str:
    """Return what to do instead of an operation that is not in the table."""
    short = name.rpartition(".")[2]
    if short in ("grad", "requires_grad_"):
        return "do not differentiate in the loss"
    if short.endswith("_") and not short.endswith("__"):
        return "write it without changing a tensor in place, e.g. `x = x + y`"
    return "use operations that compute each sample by itself: layers, pooling, and a plain mean of the losses"


FACTS = {
    **dict.fromkeys(
        (f"torch.Tensor.{name}" for name in ("dim", "ndimension", "is_floating_point", "is_complex", "element_size")),
        "plain",
    ),
    **{f"torch.Tensor.{name}.__get__": "plain" for name in ("ndim", "dtype", "device", "requires_grad", "is_sparse")},
    "torch.is_floating_point": "plain",
    "torch.Tensor.size": "size",
    "torch.Tensor.shape.__get__": "size",
    "torch.Tensor.__len__": "length",
}
"""What numbers that follow from the form of a tensor are: the same for all batches, a length, or neither."""
