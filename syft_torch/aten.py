"""The aten op table: torch's kernels, described from their schemas."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

from syft_core.features import Later
from syft_core.hook.attributes import Op, OpTable, words
from syft_core.hook.facts import Facts
from syft_core.hook.operators import SYNONYMS
from syft_core.values import Function

RESHAPED = words("squeeze_ t_ transpose_ unsqueeze_")
"""Kernels that change the shape of a tensor in place, and not its elements."""
REVEALS = words("_local_scalar_dense item equal is_nonzero")
"""Kernels that return a value instead of a tensor."""


DECOMPOSED = words("""
    native_layer_norm_backward native_group_norm_backward
    native_batch_norm_backward
    mse_loss mse_loss_backward smooth_l1_loss smooth_l1_loss_backward
    huber_loss huber_loss_backward binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits
    leaky_relu leaky_relu_backward hardtanh hardtanh_backward elu elu_backward silu silu_backward softplus
    softplus_backward hardsigmoid hardsigmoid_backward hardswish hardswish_backward threshold
    sigmoid_backward tanh_backward gelu_backward _softmax_backward_data _log_softmax_backward_data
    linalg_vector_norm addcmul addcdiv lerp addmv baddbmm var std var_mean
    native_dropout_backward unfold_backward rsub
    trace diag_embed block_diag rot90 take index_fill linalg_cross
    pixel_shuffle pixel_unshuffle
    glu glu_backward mish mish_backward softshrink hardshrink heaviside logit logit_backward _prelu_kernel
    _prelu_kernel_backward dist norm renorm
    reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
    upsample_nearest1d upsample_nearest2d upsample_bilinear2d
    im2col col2im _adaptive_avg_pool2d
    celu soft_margin_loss soft_margin_loss_backward vdot std_mean aminmax
    nansum count_nonzero addr deg2rad rad2deg
    _weight_norm_interface upsample_bicubic2d upsample_linear1d
""")
"""Kernels for which torch's own definition in terms of simpler kernels is used, unless a layer has a rule."""


class AtenOp(Op):
    """One overload of a kernel, such as ``aten.mul.Tensor``; its ``operation`` is ``mul``, as for ``torch.mul``."""

    func: torch._ops.OpOverload
    definitions = Later("syft_torch.definitions:DEFINITIONS")

    @cached_property
    def attr(self) -> str:
        """The name without namespace and overload, ``mul_`` for ``aten.mul_.Tensor``; else the full name."""
        return self.name if self.operation == self.name else _attr(self.func)

    @cached_property
    def is_composite(self) -> bool:
        """Whether torch defines it in terms of other kernels; these only arrive in inference mode."""
        key = torch._C.DispatchKey.CompositeImplicitAutograd
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        return key in self.func.py_kernels or bool(has_kernel(self.func.name(), key))

    @cached_property
    def reshaping(self) -> Function | None:
        """For the kernels of ``RESHAPED``: the same out of place."""
        attr = _attr(self.func)
        return getattr(torch.ops.aten, attr.removesuffix("_")) if attr in RESHAPED else None

    @cached_property
    def decomposition(self) -> Function | None:
        """The definition in terms of simpler kernels: our own, or torch's for the kernels of ``DECOMPOSED``."""
        word = self.attr.removesuffix("_")
        if word not in DECOMPOSED:
            return self.definitions.get(word)  # type: ignore[no-any-return]  # a function or None
        from torch._decomp import decomposition_table  # noqa: PLC0415  # slow to load, and rarely needed

        func = self.func
        if self.inplace:
            func = getattr(getattr(torch.ops.aten, word), func._overloadname)
        found: Function | None = decomposition_table.get(func)
        return found


class AtenTable(OpTable):
    """Torch's kernels, added on first use; an entry permits nothing: numeric layers refuse kernels without a rule."""

    def of(self, func: torch._ops.OpOverload) -> AtenOp:
        """Return the entry for an overload."""
        op = self.by_func.get(func)
        if op is None:
            op = _describe(func)
            self.add(op)
        return op  # type: ignore[return-value]  # there are no other entries

    def look_up(self, name: str) -> AtenOp:
        """Return the entry called ``name``, for example ``aten.mul.Tensor``, or refuse it."""
        namespace, _, rest = name.partition(".")
        kernel, _, overload = rest.partition(".")
        packet = getattr(torch.ops.aten, kernel, None) if namespace == self.framework else None
        if not isinstance(packet, torch._ops.OpOverloadPacket) or overload not in packet.overloads():
            raise self.refuse(name)
        return self.of(getattr(packet, overload))


def _describe(func: torch._ops.OpOverload) -> AtenOp:
    attr = _attr(func)
    written = [place for place, _ in _find_written(func)]
    inplace = written == [0] and torch.Tag.inplace_view not in func.tags
    each, operation = None, attr
    if inplace and attr.endswith("_"):
        operation = attr.removesuffix("_")
    elif written:  # It changes a shape or several tensors, or has an `out`: only a rule for the full name applies.
        operation = str(func)
    if attr.startswith("_foreach_"):
        each = operation.removeprefix("_foreach_")
    reflected = operation == "rsub"
    return AtenOp(
        str(func),
        func,
        "function",
        "sub" if reflected else SYNONYMS.get(operation, operation),
        func,
        inplace,
        reflected,
        each,
        _facts,
    )


def _facts(op: Op) -> Facts:
    written = [(place, argument.name) for place, argument in _find_written(op.func) if not argument.kwarg_only]
    return Facts(
        writes=frozenset(place for both in written for place in both),
        reveals=op.attr in REVEALS,
        random=torch.Tag.nondeterministic_seeded in op.func.tags,  # type: ignore[attr-defined]  # an overload
        uninitialized="empty" in op.attr,
    )


def _find_written(func: Any) -> list[tuple[int, Any]]:
    arguments = enumerate(func._schema.arguments)
    return [(place, each) for place, each in arguments if each.alias_info and each.alias_info.is_write]


def _attr(func: torch._ops.OpOverload) -> str:
    name = str(func._schema.name).rpartition("::")[2]
    # Along an axis, torch also returns positions, which is another operation.
    if name == "sort" or (name in ("max", "min", "median") and func._overloadname == "dim"):
        return f"{name}_dim"
    return "lower_median" if name == "median" else name


ATEN = AtenTable("aten")
"""The table of this process; it does not depend on a hook."""
