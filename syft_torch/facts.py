"""Facts about torch's operations, from its schemas and from the lists below."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from syft_core.hook.attributes import Op, words
from syft_core.hook.facts import WRITES_FIRST, Discloses, Facts, Option, Places, Tier
from syft_core.hook.rules import leaves
from syft_torch.versions import UNCHECKABLE

# --- what a result discloses

REVEALS = words(
    "item tolist numpy __array__ __float__ __int__ __index__ __complex__ __bool__ __nonzero__ __long__ __contains__ "
    "__format__ __repr__ equal allclose is_nonzero storage untyped_storage data_ptr const_data_ptr __dlpack__ "
    "__reduce_ex__ is_set_to __cuda_array_interface__ q_scale q_zero_point fbgemm_linear_quantize_weight"
)
"""Operations that return a plain value."""

PARTS = words("indices values _indices _values crow_indices col_indices ccol_indices row_indices")
"""Operations that return a part of a sparse tensor."""
FORM_DEPENDS = PARTS | words(
    "nonzero argwhere masked_select unique unique_consecutive bincount to_sparse to_sparse_coo to_sparse_csr "
    "to_sparse_csc to_sparse_bsr to_sparse_bsc coalesce _coalesced _nnz indices_copy values_copy crow_indices_copy "
    "col_indices_copy "
    "ccol_indices_copy row_indices_copy is_coalesced sparse_mask _sparse_mask_projection histogram histogramdd "
    "_pack_padded_sequence _pad_packed_sequence"
)
"""Operations whose results have a form that depends on values, in addition to those that torch tags."""

SIZES = words(
    "repeat tile tensor_split split split_with_sizes hsplit vsplit dsplit view reshape expand "
    "narrow unflatten resize resize_ new_zeros new_ones new_full new_empty new_tensor interpolate pad combinations"
)
"""Operations whose form depends on values if an argument after the first, a size or a position, is a tensor."""

FACTS_OF_FORM = words(
    "shape size dim ndim ndimension numel nelement dtype device layout requires_grad is_leaf is_sparse "
    "is_floating_point is_complex is_signed is_quantized is_nested __len__ itemsize element_size nbytes"
)
"""Operations that can be answered from the form of a tensor."""
FACTS_OF_LAYOUT = words("stride is_contiguous dim_order storage_offset is_same_size is_conj is_neg _is_zerotensor")
"""Operations that return how a tensor is laid out in memory, or compare the forms of two."""
STATES_FACT = (
    FACTS_OF_FORM
    | FACTS_OF_LAYOUT
    | words(
        "is_sparse_csr result_type get_device is_cpu is_cuda "
        "is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_vulkan is_xla is_xpu is_inference is_distributed "
        "_has_compatible_shallow_copy_type type dense_dim sparse_dim _dimI _dimV "
        "retains_grad has_names qscheme q_per_channel_axis is_pinned is_shared __dlpack_device__ grad_dtype"
    )
)
"""Operations whose plain result follows from the form."""

DROPOUT = words("dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout")
FRACTIONAL = words(
    "fractional_max_pool2d fractional_max_pool3d fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices"
)

# --- what a call reads, writes and draws

LOCAL = words(
    "numpy __array__ __array_wrap__ __dlpack__ __dlpack_device__ __reduce_ex__ storage untyped_storage data_ptr "
    "const_data_ptr register_hook register_post_accumulate_grad_hook apply_ map_ map2_ share_memory_ pin_memory "
    "module_load grad_fn _grad_fn _backward_hooks _post_accumulate_grad_hooks record_stream __deepcopy__ __format__ "
    "__repr__ __cuda_array_interface__ is_set_to _base"
)
"""Operations that make sense only where the data is."""

INSTEAD = {
    **dict.fromkeys(
        ("nonzero", "argwhere", "masked_select", "__getitem__"), "(torch.where(p > 0, p, 0)).sum() / (p > 0).sum()"
    ),
    **dict.fromkeys(("unique", "unique_consecutive"), "torch.sort(p)"),
    **dict.fromkeys(("lu", "lu_factor", "lu_unpack", "ldl_factor", "geqrf"), "torch.linalg.qr(p)"),
    **dict.fromkeys(("svd_lowrank", "pca_lowrank"), "torch.linalg.svd(p)"),
    "_fused_adam": "torch.optim.Adam(model.parameters(), foreach=True)",
    "_fused_adamw": "torch.optim.AdamW(model.parameters(), foreach=True)",
    "_fused_sgd": "torch.optim.SGD(model.parameters(), foreach=True)",
    "_fused_adagrad": "torch.optim.Adagrad(model.parameters(), foreach=True)",
    **dict.fromkeys(
        ("_is_all_true", "_is_any_true"), "torch.distributions.Distribution.set_default_validate_args(False)"
    ),
    "_pack_padded_sequence": "torch.take_along_dim(rnn(p)[0], (lengths - 1).view(-1, 1, 1), 1)[:, 0]",
    "as_strided": "p.unfold(0, 2, 1)",
    "bincount": "torch.nn.functional.one_hot(p.long(), 10).sum(0)",
    "corrcoef": "torch.nn.functional.cosine_similarity((c := p - p.mean(1, keepdim=True))[:, None], c, dim=2)",
    "cov": "(p - p.mean(1, keepdim=True)) @ (p - p.mean(1, keepdim=True)).T / (p.shape[1] - 1)",
    "eig": "torch.linalg.eigh(p)",
    "eigvals": "torch.linalg.eigvalsh(p)",
    "embedding_bag": "torch.nn.functional.embedding(p.long(), weight).mean(1)",
    "gaussian_nll_loss": "(variance.log() + (p - target) ** 2 / variance).mean() / 2",
    "gradient": "torch.diff(p)",
    "histogram": "torch.histc(p, 10, 0, 1)",
    "lcm": "(p * p).abs() // torch.gcd(p, p).clamp(min=1)",
    "log_normal": "p.normal_().exp_()",
    "linspace": "torch.arange(10) / 9",
    "lstsq": "torch.linalg.pinv(p) @ p",
    "lu_solve": "torch.linalg.solve(p, p)",
    "multinomial": "(p.log() - torch.rand_like(p).log().neg().log()).argmax(-1)",
    "native_dropout": "torch.nn.functional.dropout(p)",
    "native_layer_norm": "torch.nn.functional.layer_norm(p, p.shape[-1:])",
    "random": "p.uniform_(0, 10).floor_()",
    "resize": "p.reshape(-1)",
    "rfft2": "torch.fft.fft2(p)",
    "rfftn": "torch.fft.fftn(p)",
    "rrelu": "torch.nn.functional.leaky_relu(p)",
    "triangular_solve": "torch.linalg.solve_triangular(p, p, upper=True)",
    "unsafe_chunk": "torch.chunk(p, 2)",
    "unsafe_split": "torch.split(p, 2)",
    "view_copy": "p.reshape(-1).clone()",
}
"""Alternatives that refusals suggest: reviewed, with a form that does not depend on values."""
BEYOND = words(
    "as_strided as_strided_copy as_strided_scatter resize resize_as _resize_output slice_inverse _reshape_alias"
)
"""Operations that access memory beyond a tensor that is a view, within the memory of which it is a view."""
JOINS = words("to type_as")
"""Methods that convert a tensor to the device and the dtype of another."""
SELECTS = words(
    "min max amin amax aminmax fmin fmax sort msort argsort topk kthvalue median nanmedian mode quantile nanquantile "
    "cummax cummin unique unique_consecutive index_select gather take take_along_dim masked_select"
)
"""Operations that return single elements of an operand."""
UNINITIALIZED = words("empty_like new_empty new_empty_strided new")
"""Operations that return uninitialized memory."""

WRITES: Mapping[str, tuple[str, Option | None]] = {
    "batch_norm": ("running_mean running_var", Option(None, "training", default=False)),
    "native_batch_norm": ("running_mean running_var", Option(None, "training", default=True)),
    "cudnn_batch_norm": ("running_mean running_var", Option(None, "training", default=True)),
    "miopen_batch_norm": ("running_mean running_var", Option(None, "training", default=True)),
    "instance_norm": ("running_mean running_var", Option(None, "use_input_stats", default=True)),
    "batch_norm_update_stats": ("running_mean running_var", None),
    "batch_norm_gather_stats": ("running_mean running_var", None),
    "batch_norm_gather_stats_with_counts": ("running_mean running_var", None),
    "embedding": ("weight", Option(None, "max_norm")),
    "embedding_bag": ("weight", Option(None, "max_norm")),
    "module_load": ("self", None),
}
"""Arguments that operations change although their schemas do not say so, and the option that enables it."""

RANDOM = (DROPOUT | FRACTIONAL) | words(
    "rrelu gumbel_softmax svd_lowrank pca_lowrank lobpcg uniform normal kaiming_uniform multi_head_attention_forward"
)
"""Operations that draw random numbers, in addition to those that torch tags."""

ALTERS_AUTOGRAD = words(
    "requires_grad retain_grad grad data grad_dtype _backward_hooks _post_accumulate_grad_hooks _grad"
)
"""Setters and methods that change the autograd state of a tensor."""

OFF = (FRACTIONAL | UNCHECKABLE) | words(
    "segment_reduce new view_copy lcm ldl_solve lu_unpack binomial ctc_loss fused_moving_avg_obs_fake_quant eig "
    "eigvals cudnn_batch_norm miopen_batch_norm native_batch_norm choose_qparams_optimized index "
    "grid_sampler grid_sampler_2d grid_sampler_3d native_group_norm sparse_resize "
    "sparse_resize_and_clear resize_as_sparse unsafe_chunk unsafe_split unsafe_split_with_sizes native_channel_shuffle"
)
"""Operations that crash, hang, read out of bounds or show unwritten memory for some arguments or values."""
OFF_PREFIXES = ("_", "fbgemm_", "quantized_", "cudnn_", "miopen_", "mkldnn_", "batch_norm_")
"""Prefixes of operations that are off: internals of torch, and kernels that do not check packed weights."""
LARGEST = {
    **dict.fromkeys(words("max_pool1d max_pool1d_with_indices lp_pool1d lp_pool2d lp_pool3d matrix_power"), 2**24),
    **dict.fromkeys(words("tensor_split hsplit vsplit dsplit mvlgamma multigammaln"), 2**16),
    **dict.fromkeys(BEYOND, 2**40),
}
"""The largest integer allowed for operations that crash, hang or access other memory with larger ones. In the check of
an offset into memory, torch multiplies without a check for overflow."""
UNCHECKED = words(
    "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell _transformer_encoder_layer_fwd "
    "_native_multi_head_attention"
)
"""Operations that crash on weights of a wrong shape."""
DIVIDES_BY = {"_native_multi_head_attention": slice(3, 5), "_transformer_encoder_layer_fwd": slice(1, 3)}
"""Operations among these that crash if one of these arguments, the numbers of features and heads, is zero."""
DIVIDES = words("div __div__ floor_divide remainder fmod")
"""Operations that divide integers: on most processors, the smallest integer divided by -1 ends the process."""
DIVIDES_SUMS = {"avg_pool2d": 6, "avg_pool3d": 6}
"""Operations that divide sums of integers, and the position of their ``divisor_override``."""
NEEDED = words(
    "_weight_norm _has_compatible_shallow_copy_type _is_view _pack_padded_sequence _pad_packed_sequence _values "
    "_indices _nnz _transformer_encoder_layer_fwd _native_multi_head_attention _nested_tensor_from_mask "
    "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ _is_all_true _is_any_true"
)
"""Operations with a leading underscore that torch's modules, optimizers, distributions and autograd use."""

# --- the reviewed operations, in all spellings: functions, methods, operators, in place

ARITHMETIC = words(
    "add sub rsub mul div floor_divide remainder fmod pow float_power neg positive abs sign sgn signbit reciprocal "
    "sqrt rsqrt square exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh "
    "atanh arcsin arccos arctan arcsinh arccosh arctanh atan2 arctan2 hypot ceil floor round trunc fix frac clamp "
    "clamp_min clamp_max clip lerp addcmul addcdiv maximum minimum fmax fmin nan_to_num erf erfc erfinv lgamma "
    "gammaln digamma psi polygamma xlogy xlog1py entr logaddexp logaddexp2 logit copysign heaviside ldexp frexp gcd "
    "nextafter deg2rad rad2deg sinc ndtr ndtri log_ndtr i0 i0e i1 i1e angle real imag conj conj_physical "
    "resolve_conj resolve_neg complex polar bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift "
    "bitwise_right_shift"
)
COMPARISONS = words(
    "eq ne lt le gt ge isclose isnan isinf isfinite isneginf isposinf isreal isin logical_and logical_or logical_xor "
    "logical_not where masked_fill"
)
REDUCTIONS = words(
    "sum mean prod max min amax amin aminmax argmax argmin all any std var std_mean var_mean median nanmedian nansum "
    "nanmean mode kthvalue quantile nanquantile logsumexp norm vector_norm matrix_norm frobenius_norm nuclear_norm "
    "dist renorm count_nonzero cumsum cumprod cummax cummin logcumsumexp trace diff trapezoid trapz "
    "cumulative_trapezoid histc sum_to_size"
)
PRODUCTS = words(
    "matmul mm bmm mv dot vdot inner outer ger addmm addmv addbmm baddbmm addr multi_dot vecdot einsum tensordot kron "
    "cross cdist pdist pairwise_distance cosine_similarity matrix_power chain_matmul"
)
LINEAR_ALGEBRA = words(
    "inv inv_ex inverse det slogdet logdet solve solve_ex solve_triangular cholesky cholesky_ex cholesky_inverse "
    "cholesky_solve qr svd svdvals eigh eigvalsh pinv pinverse matrix_rank cond tensorinv "
    "tensorsolve"
)
TRANSFORMS = words(
    "fft ifft rfft irfft hfft ihfft fft2 ifft2 irfft2 fftn ifftn irfftn fftshift ifftshift stft "
    "view_as_real view_as_complex"
)
LAYERS = DROPOUT | words(
    "linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d batch_norm instance_norm "
    "layer_norm group_norm rms_norm local_response_norm normalize norm_except_dim _weight_norm max_pool1d max_pool2d "
    "max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d "
    "avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d lp_pool1d lp_pool2d lp_pool3d embedding one_hot lstm gru rnn_tanh rnn_relu lstm_cell "
    "gru_cell rnn_tanh_cell rnn_relu_cell _transformer_encoder_layer_fwd _native_multi_head_attention "
    "scaled_dot_product_attention multi_head_attention_forward interpolate pad constant_pad_nd pixel_shuffle "
    "pixel_unshuffle grid_sample affine_grid unfold fold pad_sequence"
)
ACTIVATIONS = words(
    "relu relu6 leaky_relu prelu elu selu celu gelu silu mish glu sigmoid logsigmoid hardsigmoid hardswish hardtanh "
    "hardshrink softshrink tanhshrink softplus softsign softmax softmin log_softmax gumbel_softmax threshold"
)
LOSSES = words(
    "mse_loss l1_loss smooth_l1_loss huber_loss nll_loss cross_entropy binary_cross_entropy "
    "binary_cross_entropy_with_logits kl_div poisson_nll_loss soft_margin_loss multi_margin_loss "
    "multilabel_margin_loss multilabel_soft_margin_loss hinge_embedding_loss margin_ranking_loss "
    "cosine_embedding_loss triplet_margin_loss triplet_margin_with_distance_loss"
)
SHAPES = words(
    "reshape reshape_as view view_as flatten unflatten ravel squeeze unsqueeze transpose t T mT H mH adjoint permute "
    "movedim moveaxis swapaxes swapdims expand expand_as broadcast_to broadcast_tensors repeat repeat_interleave tile "
    "cat stack hstack vstack dstack column_stack row_stack block_diag split split_with_sizes chunk tensor_split "
    "hsplit vsplit dsplit unbind narrow select diag diagonal diag_embed diagflat tril triu flip fliplr flipud rot90 "
    "roll contiguous meshgrid cartesian_prod atleast_1d atleast_2d atleast_3d vander __reversed__"
)
INDEXING = words(
    "__getitem__ __setitem__ gather scatter scatter_add scatter_reduce index_select index_add index_copy index_fill "
    "index_put index_reduce take take_along_dim masked_scatter put sort argsort msort topk searchsorted bucketize "
    "fill_diagonal select_scatter slice_scatter diagonal_scatter"
)
INDEXED = words(
    "gather scatter scatter_add scatter_reduce index_select index_add index_copy index_fill index_put index_reduce "
    "take take_along_dim"
)
"""Operations with an argument called ``index`` or ``indices``."""
CREATION = words(
    "eye clone copy fill zero zeros_like ones_like full_like empty_like rand_like randn_like randint_like new_zeros "
    "new_ones new_full new_empty new_tensor to type type_as cpu float double half bfloat16 long int short char byte "
    "bool cfloat cdouble normal uniform bernoulli exponential constant kaiming_uniform"
)
AUTOGRAD = words("backward grad data requires_grad retain_grad detach link")
_GRADIENTS = ("torch.autograd.grad", "torch.autograd.links.grad")
"""The functions that return gradients instead of accumulating them."""
OPTIMIZERS = words("_amp_foreach_non_finite_check_and_unscale _amp_update_scale") | words(
    "abs add addcdiv addcmul clamp_max clamp_min copy div exp lerp max maximum minimum mul neg norm pow reciprocal "
    "rsqrt sign sqrt sub zero",
    prefix="_foreach_",
)
"""The operations on lists that torch's optimizers and gradient clipping use."""
PUBLIC = words(
    "lobpcg unravel_index affine_grid_generator alias_copy argwhere as_strided_copy as_strided_scatter bincount "
    "ccol_indices_copy channel_shuffle col_indices_copy combinations conv_tbc convolution corrcoef cov "
    "crow_indices_copy dequantize detach_copy diagonal_copy spmm embedding_bag expand_copy "
    "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine geqrf gradient hash_tensor histogram "
    "histogramdd hspmm igamma igammac indices_copy int_repr istft lu_solve masked_select matrix_exp multinomial "
    "mvlgamma narrow_copy native_dropout native_layer_norm native_norm nonzero nonzero_static "
    "orgqr ormqr permute_copy poisson q_per_channel_scales q_per_channel_zero_points quantize_per_channel "
    "quantize_per_tensor quantize_per_tensor_dynamic row_indices_copy rrelu sspaddmm select_copy slice_copy "
    "slice_inverse smm split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy triangular_solve "
    "unbind_copy unfold_copy unique_consecutive unsqueeze_copy values_copy view_as_complex_copy view_as_real_copy lu "
    "pca_lowrank svd_lowrank unique adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices "
    "adaptive_max_pool3d_with_indices gaussian_nll_loss linear_cross_entropy max_unpool1d max_unpool2d max_unpool3d "
    "__div__ _indices _nnz _values as_strided cauchy ccol_indices chalf coalesce col_indices crow_indices cuda "
    "geometric indices ipu is_coalesced log_normal mtia random resize resize_as row_indices sparse_mask storage_type "
    "to_dense to_mkldnn to_sparse values xpu householder_product ldl_factor ldl_factor_ex lstsq lu_factor "
    "lu_factor_ex hfft2 hfftn ihfft2 ihfftn rfft2 rfftn airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 erfcx "
    "gammainc gammaincc modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln "
    "scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 zeta new_empty_strided to_padded_tensor "
    "to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr embedding_renorm _is_all_true _is_any_true "
    "_nested_tensor_from_mask _pack_padded_sequence _pad_packed_sequence linspace logspace sampled_addmm spsolve "
    "grad_dtype _is_view output_nr"
) | words(
    "acos asin atan ceil clone cos cosh erf erfc expm1 floor frac lgamma log log10 log1p log2 mm powsum round sigmoid "
    "sin sinh tan tanh trunc",
    prefix="_foreach_",
)
"""The other operations that are memory-safe for all arguments, according to tests/facts. They may run on data
the sender may see. Unlisted operations are off."""
FAILS = words(
    "floor_divide remainder fmod div pow polygamma norm nuclear_norm matrix_norm matrix_power quantile nanquantile "
    "histc embedding one_hot lstm gru rnn_tanh rnn_relu batch_norm instance_norm gumbel_softmax"
)
"""Exceptions in the groups of ``TOTAL``, which fail for some values: integer division by zero, an index out of range, a
singular matrix."""
_MOSTLY_TOTAL = ARITHMETIC | COMPARISONS | REDUCTIONS | PRODUCTS | TRANSFORMS | LAYERS | ACTIVATIONS | SHAPES
TOTAL = _MOSTLY_TOTAL - FAILS
"""The operations that work with all values."""
NOT_REVIEWED = frozenset({"torch.Tensor.addbmm_", "torch.linalg.polar"})
"""Spellings of reviewed operations that are not reviewed: the first may change the shape of its tensor, which the meta
device refuses; the second, in torch 2.15, decomposes a matrix and has only the name in common with ``torch.polar``."""
REVIEWED = (_MOSTLY_TOTAL | LINEAR_ALGEBRA | LOSSES | INDEXING | CREATION | AUTOGRAD | OPTIMIZERS) - UNCHECKABLE
"""The operations that may run on data the sender may not see. tests/facts checks each of them: forms can be inferred
and do not depend on values, only the arguments are read, and no argument crashes the process."""
_SCHEMA_PREFIXES = {"torch.special.": "special_", "torch.linalg.": "linalg_", "torch.fft.": "fft_"}


def describe(op: Op) -> Facts:
    """Return the facts about an operation of torch."""
    return _Description(op).facts


@dataclass
class _Description:
    op: Op

    @cached_property
    def overloads(self) -> list[Any]:
        op = self.op
        prefix = next((short for path, short in _SCHEMA_PREFIXES.items() if op.name.startswith(path)), "")
        plain = f"{op.operation}_" if op.inplace else op.operation
        for name in (prefix + op.attr, op.attr, plain):
            packet = None if name.startswith("__") else getattr(torch.ops.aten, name, None)
            if packet is not None:
                kernels = [getattr(packet, overload) for overload in packet.overloads()]
                return [kernel for kernel in kernels if torch._C._dispatch_has_kernel(kernel._name)]
        return []

    @cached_property
    def tags(self) -> set[Any]:
        return {tag for kernel in self.overloads for tag in kernel.tags}

    @property
    def parameters(self) -> list[str]:
        try:
            return [*inspect.signature(self.op.func).parameters]
        except (TypeError, ValueError):
            return [argument.name for kernel in self.overloads[:1] for argument in kernel._schema.arguments]

    @property
    def facts(self) -> Facts:
        op = self.op
        last, operation = op.attr, op.operation
        writes, writes_if = self._writes()
        tier = self._tier()
        return Facts(
            first=self._first(),
            writes=writes,
            writes_if=writes_if,
            discloses=self._discloses(tier),
            form_depends=_form_depends(op),
            reads_beyond=operation in BEYOND,
            uninitialized=operation in UNINITIALIZED,
            partial=tier != "reviewed" or operation not in TOTAL,
            indices=self._indices(),
            random=torch.Tag.nondeterministic_seeded in self.tags or operation in RANDOM,
            tier=tier,
            states_fact=last in STATES_FACT and op.spelling != "setter",
            reveals=last in REVEALS,
            local=last in LOCAL,
            differentiates=op.spelling != "getter" and (last == "backward" or op.name in _GRADIENTS),
            accumulates=last == "backward",
            selects=operation in SELECTS,
            retains=last == "retain_grad",
            alters_autograd=op.spelling != "getter" and operation in ALTERS_AUTOGRAD and op.name not in _GRADIENTS,
            joins=last in JOINS,
            shape_depends_on_floats=not self._is_elementwise(),
            instead=INSTEAD.get(operation, ""),
        )

    def _is_elementwise(self) -> bool:
        """Return whether results have the forms of the operands, whatever the floats among the arguments are."""
        if not self.overloads:
            return False
        return torch.Tag.pointwise in self.tags or self.op.inplace or self.op.operation.startswith("_foreach_")

    def _first(self) -> str:
        """Return the name of the first argument; ``self`` in a schema is ``input`` in Python."""
        names = self.parameters
        builtin = not inspect.isfunction(self.op.func) and self.op.each is None
        if builtin and any(kernel._schema.arguments[0].name == "self" for kernel in self.overloads):
            return "input"
        return names[0] if names else ""

    def _writes(self) -> tuple[Places, Mapping[int | str, Option]]:
        op = self.op
        if op.spelling == "getter":
            return frozenset(), {}
        if op.spelling == "setter" or op.attr == "__setitem__":
            return WRITES_FIRST, {}
        if op.operation in WRITES:
            names, option = WRITES[op.operation]
            places = self._places(names.split())
            return places, {} if option is None else dict.fromkeys(places, self._option(option))
        written = {
            argument.name
            for kernel in self.overloads
            for argument in kernel._schema.arguments
            if argument.alias_info and argument.alias_info.is_write and not argument.kwarg_only
        }
        if op.inplace:
            places = WRITES_FIRST | self._places(sorted(written))
            return (WRITES_FIRST if places == WRITES_FIRST else places), {}
        if not written and "inplace" in (parameters := self.parameters):
            places = WRITES_FIRST | {parameters[0]}
            return places, dict.fromkeys(places, self._option(Option(None, "inplace")))
        if _takes_out_by_position(op.func):
            written.add("out")
        return self._places(sorted(written)), {}

    def _indices(self) -> Places:
        if self.op.attr in ("__getitem__", "__setitem__"):
            return frozenset({1})
        return self._places(["index", "indices"]) if self.op.operation in INDEXED else frozenset()

    def _places(self, names: Sequence[str]) -> Places:
        parameters = self.parameters
        return frozenset(names) | {parameters.index(name) for name in names if name in parameters}

    def _option(self, option: Option) -> Option:
        parameters = self.parameters
        return replace(option, position=parameters.index(option.name) if option.name in parameters else None)

    def _discloses(self, tier: Tier) -> Discloses:
        op = self.op
        if op.attr in REVEALS:
            return "values"
        if op.operation in FORM_DEPENDS:
            return "form"
        if tier == "reviewed" or op.operation in _FORM_DEPENDS_ON or op.operation in SIZES or op.attr in STATES_FACT:
            return "nothing"
        if self.tags & {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}:
            return "form"
        return "nothing" if self.overloads or op.spelling in ("getter", "setter") else "values"

    def _tier(self) -> Tier:
        op = self.op
        if op.attr in REVEALS or op.attr in LOCAL or op.operation in OFF:
            return "off"
        internal = op.attr.startswith(OFF_PREFIXES) and not op.attr.startswith("__")
        if internal and op.attr not in NEEDED and op.each is None:
            return "off"
        if is_reviewed(op):
            return "reviewed"
        return "public" if op.operation in PUBLIC | REVIEWED else "off"


def is_reviewed(op: Op) -> bool:
    """Return whether an operation is on the reviewed list."""
    if op.name.startswith("torch.sparse.") or op.name in NOT_REVIEWED:
        return False
    return op.operation in REVIEWED or (op.attr in STATES_FACT and op.spelling != "setter")


# --- forms that depend on values in some calls only


def _is_mask_or_bound(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    index = args[1] if len(args) > 1 else tuple(kwargs.values())
    return any(map(_selects_by_value, index if type(index) is tuple else (index,)))


def _selects_by_value(index: object) -> bool:
    if type(index) is slice:
        return any(hasattr(bound, "ndim") for bound in (index.start, index.stop, index.step))
    return any(str(getattr(leaf, "dtype", "")).rpartition(".")[2] in ("bool", "uint8") for leaf in leaves(index))


def _is_condition_alone(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    return len(args) + len(kwargs) == 1


def _is_size_a_tensor(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    named = {name: value for name, value in kwargs.items() if name not in ("input", "tensor")}
    return any(hasattr(leaf, "ndim") for leaf in leaves((tuple(args[1:]), named)))


def _is_count_a_tensor(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Return whether the number of repeats is a tensor, also as the only argument of ``torch.repeat_interleave``."""
    is_alone = len(args) + len(kwargs.keys() & {"input", "repeats"}) < 2
    return is_alone or _is_size_a_tensor(args, kwargs)


def _has_no_class_count(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    count = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    return type(count) is not int or count < 0


def is_packed(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Return whether the input of a recurrent network is packed; the weights are then the fourth argument."""
    return "batch_sizes" in kwargs or (len(args) > 3 and isinstance(args[3], (list, tuple)))


def _is_position_a_tensor(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Return whether an argument after the second, which is the written tensor, is a tensor."""
    named = {name: value for name, value in kwargs.items() if name not in ("input", "src")}
    return _is_size_a_tensor(args[1:], named)


def _form_depends(op: Op) -> Callable[[Sequence[Any], Mapping[str, Any]], bool] | None:
    if op.name == "torch.nn.init.normal_" or op.operation in SIZES:
        return _is_size_a_tensor
    return _FORM_DEPENDS_ON.get(op.operation)


def _is_complex_in_a_graph(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Return whether complex operands require gradients: torch's backward fails if the loss depends on the phase."""
    operands = [leaf for leaf in leaves((args, dict(kwargs))) if hasattr(leaf, "requires_grad")]
    return any(leaf.requires_grad and leaf.dtype.is_complex for leaf in operands)


_FORM_DEPENDS_ON = {
    **dict.fromkeys(("svd", "eigh"), _is_complex_in_a_graph),
    "repeat_interleave": _is_count_a_tensor,
    "select_scatter": _is_position_a_tensor,
    "slice_scatter": _is_position_a_tensor,
    "__getitem__": _is_mask_or_bound,
    "where": _is_condition_alone,
    "one_hot": _has_no_class_count,
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), is_packed),
}


def _takes_out_by_position(function: Any) -> bool:
    try:
        out = inspect.signature(function).parameters.get("out")
    except (TypeError, ValueError):
        return False
    return out is not None and out.kind is out.POSITIONAL_OR_KEYWORD
