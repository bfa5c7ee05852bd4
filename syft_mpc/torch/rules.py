"""The rules of encoded numbers for torch's kernels that the tables of the core do not have.

Importing this module registers them. ``layers.py`` and ``activations.py`` have the longer functions.
"""

from __future__ import annotations

from math import inf
from typing import NoReturn

from syft_core.hook.argument_plans import ArgumentPlan
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import dispatch
from syft_core.hook.hook_args import get_plan
from syft_core.values import Args, Function, Kwargs, Nested
from syft_mpc import arithmetic, integers
from syft_mpc.arithmetic import Axes
from syft_mpc.authenticated_tensor import AuthenticatedTensor
from syft_mpc.errors import PrecisionError, ProtocolError
from syft_mpc.fixed_precision import FixedPrecisionTensor, convert, replace_infinity
from syft_mpc.integers import Integers
from syft_mpc.numbers import Numbers, refuse
from syft_mpc.order import pick, trunc
from syft_mpc.spdz import MATRICES
from syft_mpc.torch import layers
from syft_mpc.torch.activations import ACTIVATIONS, log_sigmoid

# --- arithmetic


def add_product(
    numbers: Numbers, x: Integers, one: Integers, other: Integers, *, beta: float = 1, alpha: float = 1
) -> Integers:
    """Add a matrix product."""
    added = numbers.times(x, beta) if beta != 1 else x
    if alpha == 1:
        return integers.multiply_and_add(one, other, added, numbers.scale)
    product = integers.multiply(one, other, numbers.scale, MATRICES)
    return integers.add(added, numbers.times(product, alpha))


def clamp_max(numbers: Numbers, x: Integers, max: float) -> Integers:
    """Limit numbers from above."""
    return arithmetic.clamp(numbers, x, None, max)


def threshold_backward(numbers: Numbers, gradient: Integers, result: Integers, threshold: float) -> Integers:
    """Return the gradient where the result of relu is positive, as recorded by its forward pass."""
    known = getattr(result, "derivative", None)
    if threshold == 0 and known is not None:
        return integers.multiply(known, gradient)
    return numbers.mul(numbers.compare(integers.greater, result, numbers.value(threshold)), gradient)


def vector_norm(
    numbers: Numbers, x: Integers, ord: float = 2, dim: Axes = None, keepdim: bool = False, **_options: object
) -> Integers:
    """Compute the Euclidean norm, or the sum (1), the largest (inf) or the smallest (-inf) of the sizes."""
    if ord == 2:
        return numbers.compute("sqrt", arithmetic.total(numbers, numbers.square(x), dim, keepdim))
    if ord not in (1, inf, -inf):
        raise PrecisionError.unknown_norm(ord)
    norms: dict[float, Function] = {1: arithmetic.total, inf: arithmetic.largest, -inf: arithmetic.smallest}
    return norms[ord](numbers, arithmetic.absolute(numbers, x), dim, keepdim)


def new_full(numbers: Numbers, x: Integers, size: Axes, fill_value: float, **_options: object) -> Integers:
    """Return a constant of a shape; it is public."""
    return integers.kernels_of(x).zeros(tuple(size), numbers.ring) + numbers.value(fill_value)


# --- order


def smallest_along(numbers: Numbers, x: Integers, dim: int, keepdim: bool = False) -> tuple[Integers, Integers]:
    """Return the smallest numbers along an axis, and where the first of them are."""
    found, place = arithmetic.find_extreme(numbers, integers.neg(x), dim, keepdim)
    return integers.neg(found), place


def sort(
    numbers: Numbers, x: Integers, dim: int = -1, descending: bool = False, *, stable: bool = True
) -> tuple[Integers, Integers]:
    """Sort along an axis: return the numbers, and where they were, as numbers."""
    return pick(numbers, x, dim, None, descending)


def topk(
    numbers: Numbers, x: Integers, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Integers, Integers]:
    """Return the k largest or smallest numbers along an axis, in this order, and where they were."""
    return pick(numbers, x, dim, range(k), largest)


def kthvalue(numbers: Numbers, x: Integers, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Integers, Integers]:
    """Return the k-th smallest number along an axis, counted from 1, and where it was."""
    values, places = pick(numbers, x, dim, range(k - 1, k))
    if keepdim or not integers.shape_of(x):
        return values, places
    shape = list(integers.shape_of(x))
    del shape[integers.find_axis(x, dim)]
    return integers.reshape(values, shape), integers.reshape(places, shape)


def median_along(numbers: Numbers, x: Integers, dim: int, keepdim: bool = False) -> tuple[Integers, Integers]:
    """Return the lower median along an axis, and where it was."""
    length = integers.shape_of(x)[integers.find_axis(x, dim)] if integers.shape_of(x) else 1
    return kthvalue(numbers, x, (length + 1) // 2, dim, keepdim)


FixedPrecisionTensor.add_rules(
    {
        **dict.fromkeys(("mm", "bmm", "mv"), arithmetic.matmul),
        "addmm": add_product,
        "sgn": arithmetic.sign,
        "frac": lambda numbers, x: integers.sub(x, trunc(numbers, x)),
        "relu": lambda _numbers, x: integers.relu(x),
        "threshold_backward": threshold_backward,
        "linalg_vector_norm": vector_norm,
        "max_dim": arithmetic.find_extreme,
        "min_dim": smallest_along,
        "sort_dim": sort,
        "topk": topk,
        "kthvalue": kthvalue,
        "median_dim": median_along,
        "lower_median": lambda numbers, x: median_along(numbers, integers.flatten(x), 0)[0],
        "zero": arithmetic.zeros_like,
        "new_ones": lambda numbers, x, size, **_options: new_full(numbers, x, size, 1),
        "convolution": layers.convolution,
        "max_pool2d_with_indices": layers.max_pool,
    },
    exact=True,
)
FixedPrecisionTensor.add_rules(
    {"clamp": arithmetic.clamp, "clamp_min": arithmetic.clamp, "clamp_max": clamp_max}, exact=True, infinity="largest"
)
FixedPrecisionTensor.add_rules(
    {"masked_fill": lambda numbers, x, mask, value: arithmetic.where(numbers, mask, value, x), "new_full": new_full},
    exact=True,
    infinity="mask",
)
FixedPrecisionTensor.add_rules({"embedding": layers.embedding}, exact=True, plain="public")
FixedPrecisionTensor.add_rules(
    {
        **ACTIVATIONS,
        "convolution_backward": layers.convolution_backward,
        "max_pool2d_with_indices_backward": layers.max_pool_backward,
        "avg_pool2d": layers.average_pool,
        "avg_pool2d_backward": layers.average_pool_backward,
        "native_dropout": layers.dropout,
        "bernoulli": layers.bernoulli,
    }
)
FixedPrecisionTensor.add_rules(
    {
        "native_layer_norm": layers.layer_norm,
        "native_group_norm": layers.group_norm,
        "log_sigmoid_forward": log_sigmoid,
    },
    first_only=True,
)
FixedPrecisionTensor.add_rules(
    {
        "native_batch_norm": layers.batch_norm,
        "_native_batch_norm_legit": layers.batch_norm_legit,
        # A rule for a kernel that writes several arguments has its full name.
        "aten._native_batch_norm_legit.default": layers.batch_norm_legit,
        "_native_batch_norm_legit_no_training": layers.batch_norm_without_training,
    },
    plain="kept",
    first_only=True,
)
FixedPrecisionTensor.add_rules(
    {
        **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), layers.nll_loss),
        **dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward"), layers.nll_loss_backward),
    },
    plain="kept",
)


# --- rules of calls with layers


def _leave_out_places(op: Op, _plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
    """Handle the gradient of max pooling: the last argument, where the largest numbers are, is secret."""
    args = args[:-1]
    return _unpool(op, get_plan(op.name, args, kwargs), args, kwargs)


def _refuse_to_draw(_op: Op, _plan: ArgumentPlan, _args: Args, _kwargs: Kwargs) -> NoReturn:
    """Refuse ``torch.bernoulli(x)``: the probabilities are secret."""
    refuse("drawing with secret probabilities", layers.DRAW)


def _pad(op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
    """Pad with any number: with zeros, after this number has been subtracted."""
    layer = plan.leader(args, kwargs)
    args, kwargs = replace_infinity("mask", layer.numbers, args, kwargs)
    if any(args[2:]):
        return dispatch(op, (args[0] - args[2], args[1]), {}) + args[2]
    return FixedPrecisionTensor.respond(op, plan, args, kwargs)


def _scatter(op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
    """Replace elements at public indices, or at secret ones, as the gradient of ``x.sort(dim)`` does."""
    if len(args) != 4 or not isinstance(args[2], FixedPrecisionTensor):
        return FixedPrecisionTensor.respond(op, plan, args, kwargs)
    layer, (target, axis, index, values) = plan.leader(args, kwargs), args
    whole, place, new = (layer.as_operand(x).child for x in (target, index, values))
    return layer.copy_onto(_put_secretly(layer.numbers, whole, axis, place, new))


def _put_secretly(numbers: Numbers, whole: Integers, axis: int, place: Integers, new: Integers) -> Integers:
    """Compare all indices with the secret ones, which must differ, and multiply the results by the new values."""
    shape, few = list(integers.shape_of(whole)), integers.shape_of(place)
    if not shape and not few:  # The only index of a single number is 0.
        return integers.multiply(new, 1)
    axis = integers.find_axis(whole, axis)
    if len(few) != len(shape) or integers.shape_of(new) != few:
        raise ProtocolError.secret_index()
    length, shape[axis] = shape[axis], few[axis]
    if tuple(shape) != few:
        raise ProtocolError.secret_index()
    kernels, next_axis = integers.kernels_of(whole), axis + 1
    line = kernels.arange(length).reshape((-1, *(1,) * (len(shape) - next_axis)))
    place, new = integers.unsqueeze(place, next_axis), integers.unsqueeze(new, next_axis)
    marks = integers.equal(place, kernels.cast(line, numbers.ring) * numbers.scale)
    chosen = integers.multiply(marks, integers.sub(new, integers.unsqueeze(whole, axis)))
    return integers.add(whole, integers.total(chosen, axis))


_unpool = FixedPrecisionTensor.rules["max_pool2d_with_indices_backward"]
FixedPrecisionTensor.add_answers(
    {
        "_to_copy": convert,
        "max_pool2d_with_indices_backward": _leave_out_places,
        "aten.bernoulli.default": _refuse_to_draw,
        "constant_pad_nd": _pad,
        # Not the operation in place, to which ``respond`` answers.
        **dict.fromkeys(("aten.scatter.src", "aten.scatter.value", "torch.scatter", "torch.Tensor.scatter"), _scatter),
    }
)
AuthenticatedTensor.functions |= dict.fromkeys(("mm", "bmm", "mv"), AuthenticatedTensor.functions["matmul"])
