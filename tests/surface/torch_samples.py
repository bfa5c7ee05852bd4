"""Samples for the operations of torch that its own tests do not cover."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .checks import Case

F = torch.nn.functional

ARRIVES_AS = {
    "torch.Tensor.ndimension": "torch.Tensor.dim",
    "torch.Tensor.nelement": "torch.Tensor.numel",
    "torch.Tensor.to_sparse_coo": "torch.Tensor.to_sparse",
    "torch.Tensor.__div__": "torch.Tensor.div",
    "torch.Tensor.__nonzero__": "torch.Tensor.__bool__",
    "torch.Tensor.__long__": "torch.Tensor.__int__",
    "torch.Tensor._grad.__get__": "torch.Tensor.grad.__get__",
    "torch.Tensor._grad.__set__": "torch.Tensor.grad.__set__",
    "torch.Tensor._grad_fn.__get__": "torch.Tensor.grad_fn.__get__",
}
"""Spellings that torch turns into another one before it calls the chain."""

ARBITRARY = frozenset(
    "torch.Tensor.new "
    "torch.empty_like torch.Tensor.new_empty torch.Tensor.new_empty_strided torch.Tensor.resize torch.Tensor.resize_ "
    "torch.Tensor.resize_as torch.Tensor.resize_as_ torch.resize_as_ torch._resize_output_ torch.Tensor.data_ptr "
    "torch.Tensor.const_data_ptr torch.Tensor.storage torch.Tensor.untyped_storage torch.Tensor.__reduce_ex__ "
    "torch.Tensor.__dlpack__ torch.fbgemm_pack_gemm_matrix_fp16 torch.fbgemm_pack_quantized_matrix".split()
)
"""Operations that return uninitialized memory or an address: only the form of the results is compared."""


def hand_made() -> Iterator[Case]:
    """Yield all samples, including names that this version of torch does not have."""
    for group in (
        facts,
        attributes,
        operators,
        conversions,
        autograd,
        memory,
        sparse,
        quantized,
        in_place,
        functions,
        with_elements,
        pooling,
        networks,
        lists_of_tensors,
        optimizer_steps,
        elsewhere,
        of_other_torches,
    ):
        yield from group()


def each(names: str, *args: Any, **kwargs: Any) -> Iterator[Case]:
    """Yield one case for each of ``names`` (without "torch."): the operation itself, called with the arguments."""
    for name in names.split():
        yield Case(f"torch.{name}", _function(name), args, kwargs, form_only=f"torch.{name}" in ARBITRARY)


def do(names: str, call: Callable[..., Any], *args: Any) -> Iterator[Case]:
    """Yield one case for each of ``names``; ``call`` must reach the operation."""
    for name in names.split():
        yield Case(f"torch.{name}", call, args, form_only=f"torch.{name}" in ARBITRARY)


def _function(name: str) -> Callable[..., Any]:
    """Return the operation as users spell it: a method is called on its tensor."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if name.startswith("Tensor."):
            return getattr(args[0], name[7:])(*args[1:], **kwargs)
        function = functools.reduce(getattr, name.split("."), torch)
        return function(*args, **kwargs)

    return call


def floats() -> torch.Tensor:
    return torch.tensor([[1.5, -2.0, 0.25], [3.0, 4.0, -1.0]])


def square() -> torch.Tensor:
    return torch.tensor([[2.0, 1.0], [0.5, 3.0]])


def integers() -> torch.Tensor:
    return torch.tensor([[5, 2, 7], [1, 3, 4]])


def numbers(*shape: int) -> torch.Tensor:
    """Return floats in [-1, 1) that do not depend on the seed."""
    count = torch.Size(shape).numel()
    return (torch.arange(count) * 37 % 101 / 50.5 - 1).reshape(shape)


def leaf() -> torch.Tensor:
    return floats().requires_grad_()


def facts() -> Iterator[Case]:
    yield from each(
        "Tensor.dim Tensor.ndimension Tensor.nelement Tensor.numel Tensor.element_size Tensor.get_device Tensor.size "
        "Tensor.stride Tensor.storage_offset Tensor.storage_type Tensor.dim_order Tensor.is_complex Tensor.is_conj "
        "Tensor.is_contiguous Tensor.is_distributed Tensor.is_floating_point Tensor.is_inference Tensor.is_neg "
        "Tensor.is_pinned Tensor.is_shared Tensor.is_signed Tensor._is_view Tensor._is_zerotensor Tensor.type "
        "Tensor.__len__ Tensor.__dlpack_device__ Tensor._nested_tensor_size Tensor.qscheme Tensor.dense_dim "
        "Tensor.sparse_dim Tensor._dimI Tensor._dimV Tensor._nnz Tensor.is_coalesced get_device is_complex is_conj "
        "is_distributed is_floating_point is_inference is_neg is_signed numel",
        floats(),
    )
    yield from each("Tensor.size Tensor.stride", floats(), -1)
    yield from each("Tensor.is_same_size is_same_size Tensor.is_set_to", floats(), floats())
    yield from each("_has_compatible_shallow_copy_type", floats(), floats())
    yield from each("Tensor.new", floats(), 2)
    yield from each("result_type", floats(), 3)
    yield from each("result_type", floats(), integers())


def attributes() -> Iterator[Case]:
    for name, attribute in {**vars(torch.Tensor), **vars(torch._C.TensorBase)}.items():
        if not hasattr(attribute, "__get__") or not hasattr(attribute, "__set__"):
            continue
        for tensor in (floats(), leaf(), torch.tensor([1 + 2j])):
            yield from do(f"Tensor.{name}.__get__", lambda x, name=name: getattr(x, name), tensor)
        for value in (floats(), None, True):
            yield from do(f"Tensor.{name}.__set__", lambda x, v, name=name: setattr(x, name, v), floats(), value)
    yield from do("Tensor.real.__set__ Tensor.imag.__set__", _set_parts, torch.tensor([1 + 2j]), torch.tensor([5.0]))
    yield from do("Tensor.grad.__get__", _gradient, leaf())


def _set_parts(x: Any, value: Any) -> None:
    x.real = value
    x.imag = value


def _gradient(x: Any) -> Any:
    (x * x).sum().backward()
    return x.grad


def operators() -> Iterator[Case]:
    arithmetic = "__add__ __sub__ __mul__ __div__ __truediv__ __floordiv__ __mod__ __pow__ "
    comparison = "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ "
    reflected = "__radd__ __rsub__ __rmul__ __rdiv__ __rtruediv__ __rfloordiv__ __rmod__ __rpow__ "
    yield from each(_of_tensor(arithmetic + comparison), floats(), torch.tensor([2.0, 3.0, 0.5]))
    yield from each(_of_tensor(arithmetic + comparison + reflected), floats(), 2)
    yield from each(_of_tensor("__iadd__ __isub__ __imul__ __idiv__ __itruediv__ __ifloordiv__ __imod__"), floats(), 2)
    yield from each(_of_tensor("__iadd__ __isub__ __imul__ __idiv__ __itruediv__ __ipow__"), floats(), floats())
    bits = "and or xor lshift rshift"
    yield from each(_of_tensor("".join(f"__{b}__ __r{b}__ __i{b}__ " for b in bits.split())), integers(), 2)
    yield from each(_of_tensor("".join(f"__{b}__ __i{b}__ " for b in bits.split())), integers(), integers() % 3)
    yield from each(_of_tensor("__and__ __or__ __xor__ __iand__"), floats() > 0, floats() > 1)
    yield from each(_of_tensor("__invert__"), integers())
    yield from each(_of_tensor("__matmul__ __rmatmul__"), square(), square())
    yield from each(_of_tensor("__neg__ __pos__ __abs__ __reversed__"), floats())
    for index in (0, -1, slice(0, 1), (slice(None), 1), ..., None, [1, 0], torch.tensor([1]), floats() > 0):
        yield from each("Tensor.__getitem__", floats(), index)
        yield from each("Tensor.__setitem__", floats(), index, 7.0)
    yield from each("Tensor.__setitem__", floats(), (slice(None), torch.tensor([0, 2])), torch.tensor([[1.0], [2.0]]))


def _of_tensor(names: str) -> str:
    return " ".join(f"Tensor.{name}" for name in names.split())


def conversions() -> Iterator[Case]:
    one = torch.tensor(2.5)
    yield from each(_of_tensor("__bool__ __nonzero__ __float__ __int__ __long__ __complex__ item tolist"), one)
    yield from each(_of_tensor("__index__ __int__ __bool__ is_nonzero item"), torch.tensor(3))
    yield from each("is_nonzero", one)
    yield from each(_of_tensor("tolist __repr__ __array__ numpy __dlpack__"), floats())
    yield from do("Tensor.__deepcopy__", copy.deepcopy, floats())
    yield from each("Tensor.__format__", one, ".1f")
    yield from each("Tensor.__contains__", floats(), 4.0)
    yield from each("Tensor.__reduce_ex__", floats(), 2)
    yield from each(_of_tensor("cpu type storage untyped_storage data_ptr const_data_ptr"), floats())
    yield from each(_of_tensor("type to"), floats(), torch.float64)
    yield from each(_of_tensor("type_as"), floats(), integers())
    yield from each("Tensor._autocast_to_reduced_precision", floats(), False, True, torch.float16, torch.bfloat16)
    yield from each("Tensor._autocast_to_full_precision", floats().half(), False, True)
    yield from each("Tensor.new_tensor", floats(), [1.0, 2.0])
    yield from do("Tensor.__array_wrap__", lambda x: x.__array_wrap__(x.detach().numpy()), floats())
    yield from each("Tensor.to_mkldnn", floats())
    yield from each("Tensor.to_padded_tensor", torch.nested.nested_tensor([numbers(2), numbers(3)]), 0.0)


def autograd() -> Iterator[Case]:
    yield from do("Tensor.backward", lambda x: (x * x).sum().backward(), leaf())
    yield from do("Tensor.backward", lambda x, g: (x * x).backward(g), leaf(), floats())
    yield from do("autograd.backward", lambda x: torch.autograd.backward([(x * x).sum()]), leaf())
    yield from do("autograd.grad", lambda x: torch.autograd.grad((x * x).sum(), x), leaf())
    yield from do("autograd.grad", lambda x: torch.autograd.grad((x * x).sum(), [x], create_graph=True), leaf())
    yield from do("autograd.links.link", lambda x: Squared.apply(x), leaf())
    yield from do("autograd.links.backward", lambda x: (Squared.apply(x) + x).sum().backward(), leaf())
    yield from do("autograd.links.grad", lambda x: torch.autograd.grad(Squared.apply(x).sum(), x), leaf())
    yield from do("Tensor.retain_grad Tensor.retains_grad.__get__", _retain, leaf())
    yield from do("Tensor.register_hook", _double_by_hook, leaf())
    yield from do("Tensor.register_post_accumulate_grad_hook", _zero_by_hook, leaf())
    yield from each("Tensor.requires_grad_", floats())
    yield from each("Tensor.requires_grad_", leaf(), False)
    yield from each("Tensor.detach Tensor.detach_ detach detach_ detach_copy", floats())
    yield from each("Tensor.detach detach", leaf())


class Squared(torch.autograd.Function):
    """A user's function, which becomes part of the graph under the chain."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


def _retain(x: Any) -> Any:
    y = x * x
    y.retain_grad()
    y.sum().backward()
    return y.retains_grad, y.grad


def _double_by_hook(x: Any) -> Any:
    x.register_hook(lambda grad: grad * 2)
    (x * x).sum().backward()
    return x.grad


def _zero_by_hook(x: Any) -> None:
    x.register_post_accumulate_grad_hook(_forget_gradient)
    (x * x).sum().backward()


def _forget_gradient(x: Any) -> None:
    x.grad = None


def memory() -> Iterator[Case]:
    yield from each("Tensor.share_memory_", floats())
    yield from each("Tensor.pin_memory", floats())
    yield from each("Tensor.resize Tensor.resize_", floats(), 3, 2)
    yield from each("Tensor.resize_as Tensor.resize_as_ resize_as_", floats(), numbers(3, 2))
    yield from each("_resize_output_", floats(), [2, 2], "cpu")
    yield from each("Tensor.module_load", floats(), floats() * 2)
    yield from each("slice_inverse Tensor.slice_inverse", numbers(4, 3), numbers(4, 3), 0, 0, 4)
    yield from each("Tensor.record_stream", floats(), torch.Stream("cpu"))


def sparse() -> Iterator[Case]:
    dense = torch.tensor([[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0], [0.0, 5.0, 0.0, 6.0]])
    coo, uncoalesced = dense.to_sparse(), torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (2, 2))
    yield from each("Tensor.coalesce Tensor._indices Tensor._values Tensor._nnz Tensor.is_coalesced", uncoalesced)
    yield from each("Tensor.indices Tensor.values indices_copy values_copy Tensor.to_dense Tensor._to_dense", coo)
    yield from each("Tensor.sparse_dim Tensor.dense_dim Tensor._dimI Tensor._dimV", coo)
    yield from each("Tensor._coalesced_", uncoalesced, True)
    yield from each("Tensor.sparse_resize_ Tensor.sparse_resize_and_clear_", coo, (5, 5), 2, 0)
    yield from each("Tensor.resize_as_sparse_ resize_as_sparse_", coo, torch.eye(5).to_sparse())
    yield from each("Tensor.sparse_mask Tensor._sparse_mask_projection", coo, coo)
    yield from each("Tensor.sparse_mask", dense, coo)
    yield from each("Tensor.smm smm hspmm sparse.mm", coo, dense)
    yield from each("Tensor.sspaddmm sspaddmm", coo, coo, dense)
    yield from each("sparse.addmm", dense, coo, dense)
    yield from each("sparse.softmax sparse.log_softmax", coo, 1)
    yield from each("_sparse_sum", coo)
    yield from each("Tensor.to_sparse_coo Tensor.to_sparse_csr Tensor.to_sparse_csc", dense)
    yield from each("Tensor.to_sparse_bsr Tensor.to_sparse_bsc", dense, (2, 2))
    csr, csc = dense.to_sparse_csr(), dense.to_sparse_csc()
    yield from each("Tensor.crow_indices Tensor.col_indices Tensor.values crow_indices_copy col_indices_copy", csr)
    yield from each("Tensor.ccol_indices Tensor.row_indices ccol_indices_copy row_indices_copy", csc)
    yield from each("sparse.sampled_addmm", csr, dense, dense)
    yield from each("sparse.spsolve", csr, numbers(4))


def quantized() -> Iterator[Case]:
    x, scales, zeros = numbers(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 1])
    by_tensor = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    by_channel = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
    yield from each("quantize_per_tensor", x, 0.1, 3, torch.quint8)
    yield from each("quantize_per_tensor_dynamic", x, torch.quint8, False)
    yield from each("quantize_per_channel", x, scales, zeros, 0, torch.qint8)
    of_both = "q_scale q_zero_point dequantize int_repr"
    yield from each(f"{of_both} {_of_tensor(of_both)} Tensor.qscheme", by_tensor)
    of_channels = "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points"
    yield from each(f"{of_channels} {_of_tensor(of_channels)}", by_channel)
    image = torch.quantize_per_tensor(numbers(1, 2, 4, 4), 0.1, 3, torch.quint8)
    yield from each("quantized_max_pool1d", image[0], 2)
    yield from each("quantized_max_pool2d", image, 2)
    yield from each("quantized_max_pool3d", image[:, :, None].expand(1, 2, 2, 4, 4).contiguous(), (2, 2, 2))
    ones = torch.ones(2)
    yield from each("quantized_batch_norm", image, ones, ones, ones, ones, 1e-5, 0.1, 3)
    yield from each("fake_quantize_per_tensor_affine", x, 0.1, 3, 0, 255)
    yield from each("fake_quantize_per_channel_affine", x, scales, zeros.int(), 0, -128, 127)
    yield from each("choose_qparams_optimized", x.flatten(), 6, 200, 0.16, 8)
    observer = torch.tensor([1])
    yield from each(
        "fused_moving_avg_obs_fake_quant",
        *(x, observer, observer, torch.zeros(1), torch.ones(1), torch.ones(1), torch.zeros(1, dtype=torch.int32)),
        *(0.01, 0, 255, -1),
    )
    yield from quantized_cells()


def quantized_cells() -> Iterator[Case]:
    weight = numbers(8, 4)
    yield from each("fbgemm_pack_gemm_matrix_fp16 fbgemm_linear_quantize_weight", weight)
    yield from each("fbgemm_pack_quantized_matrix", torch.ones(8, 4, dtype=torch.int8))
    yield from do(
        "fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation", _linear_fp16, numbers(2, 4), weight
    )
    yield from do(
        "fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation", _linear_int8, numbers(2, 4), weight
    )
    for cell, gates in {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}.items():
        call = lambda *args, cell=cell: _run_quantized_cell(cell, *args)  # noqa: E731  # binds the loop's name
        yield from do(f"quantized_{cell}_cell", call, numbers(2, 4), numbers(2, 4), numbers(4 * gates, 4))


def _linear_fp16(x: Any, weight: Any) -> Any:
    packed, bias = torch.fbgemm_pack_gemm_matrix_fp16(weight), x.new_zeros(8)
    one = torch.fbgemm_linear_fp16_weight(x, packed, bias)
    return one, torch.fbgemm_linear_fp16_weight_fp32_activation(x, packed, bias)


def _linear_int8(x: Any, weight: Any) -> Any:
    packed = _pack(weight)
    one = torch.fbgemm_linear_int8_weight(x, *packed, x.new_zeros(8))
    return one, torch.fbgemm_linear_int8_weight_fp32_activation(x, *packed, x.new_zeros(8))


def _pack(weight: Any) -> tuple[Any, ...]:
    integer, offsets, scale, zero_point = torch.fbgemm_linear_quantize_weight(weight)
    return integer, torch.fbgemm_pack_quantized_matrix(integer), offsets, scale, zero_point


def _run_quantized_cell(cell: str, x: Any, h: Any, weight: Any) -> Any:
    integer, packed, offsets, scale, zero_point = _pack(weight)
    bias = x.new_zeros(weight.shape[0])
    state = (h, h) if cell == "lstm" else h
    scales = (scale, scale, zero_point, zero_point)
    function = getattr(torch, f"quantized_{cell}_cell")
    return function(x, state, integer, integer, bias, bias, packed, packed, offsets, offsets, *scales)


def in_place() -> Iterator[Case]:
    yield from each("Tensor.copy_", floats(), integers())
    yield from each("Tensor.fill_diagonal_", square(), 9.0)
    yield from each("Tensor.float_power_", floats().double(), 2)
    yield from each("zero_", floats())
    yield from each("Tensor.random_", floats())
    yield from each("Tensor.random_", integers(), 3, 9)
    yield from each("Tensor.apply_", floats(), abs)
    yield from each("Tensor.map_", floats(), floats() * 2, max)
    yield from each("Tensor.map2_", floats(), floats() * 2, floats() * 3, lambda a, b, c: a + b + c)
    dropouts = "dropout alpha_dropout feature_dropout feature_alpha_dropout"
    yield from each(f"{dropouts} {dropouts.replace(' ', '_ ')}_", numbers(2, 3, 4), 0.5, True)
    yield from each("embedding_renorm_", floats(), torch.tensor([0]), 1.0, 2.0)
    yield from each("_add_relu_", floats(), floats())
    yield from each("_index_put_impl_", floats(), [torch.tensor([0])], torch.tensor([9.0]))
    yield from each("_fill_mem_eff_dropout_mask_", torch.empty(1, 2, 2, 2), 0.5, 1, 0)
    yield from do("_mkldnn_transpose_", lambda x: torch._mkldnn_transpose_(x.to_mkldnn(), 0, 1).to_dense(), floats())
    key = torch.tensor([1, 2], dtype=torch.uint64)
    yield from each("_philox_normal_ _philox_uniform_", floats(), key)
    yield from each("_philox_randint_", integers(), key, 0, 9)
    state = torch.zeros(3, 30, dtype=torch.int64)
    yield from each("_sobol_engine_initialize_state_", state, 3)
    yield from each("_sobol_engine_ff_", torch.zeros(3, dtype=torch.int64), 2, state, 3, 0)
    triangles = torch.randint(2, (3, 30, 30), generator=torch.Generator().manual_seed(0)).tril()
    yield from each("_sobol_engine_scramble_", state, triangles, 3)
    yield from each("nn.init.uniform_ nn.init.normal_", floats(), 0.0, 1.0)
    yield from each("nn.init.constant_", floats(), 3.0)
    yield from each("nn.init.kaiming_uniform_", floats(), a=0.5)
    yield from each("nn.functional.elu_ nn.functional.leaky_relu_ nn.functional.hardtanh_", floats())


def functions() -> Iterator[Case]:
    yield from each("where Tensor.where", floats() > 0, floats(), torch.zeros(3))
    yield from each("where", floats() > 0)
    yield from each("binomial", torch.full((3,), 9.0), torch.full((3,), 0.5))
    yield from each("poisson", floats().abs())
    yield from do(
        "lobpcg", lambda a, x: torch.lobpcg(a, X=x, niter=3), torch.diag(torch.arange(1.0, 10)), numbers(9, 2)
    )
    yield from each("functional.chain_matmul", square(), square(), square())
    yield from each("functional.einsum", "ij,jk->ik", square(), square())
    yield from each("functional.einsum", "ij,jk->ik", [square(), square()])
    yield from each("frobenius_norm nuclear_norm", square(), [0, 1])
    yield from each("native_norm norm_except_dim", square())
    yield from each("polygamma special.polygamma", 1, floats().abs())
    yield from each("select_copy", floats(), 0, 1)
    yield from each("slice_copy", floats(), 1, 0, 2)
    yield from each("split_copy", floats(), 1)
    yield from each("unsafe_split_with_sizes Tensor.unsafe_split_with_sizes", floats(), [1, 1])
    yield from each("view_as_complex_copy", numbers(3, 2))
    yield from each("view_as_real_copy", torch.tensor([1 + 2j]))
    yield from each("functional.pca_lowrank functional.svd_lowrank", numbers(5, 4), 2)
    yield from each("Tensor._addmm_activation", square(), square(), square())
    yield from each("Tensor._conj Tensor._conj_physical", torch.tensor([1 + 2j]))
    yield from each("Tensor._neg_view", floats())
    yield from each("_VF.atleast_1d _VF.atleast_2d _VF.atleast_3d", [torch.tensor(1.0), floats()])
    yield from each("_VF.meshgrid", [numbers(2), numbers(3)])
    yield from each("functional.meshgrid", numbers(2), numbers(3), indexing="ij")
    yield from each("linspace logspace", torch.tensor(1.0), torch.tensor(2.0), 5)
    yield from each("normal", numbers(3), numbers(3).abs())
    yield from each("_is_all_true _is_any_true", floats() > 0)
    yield from each("_standard_gamma _sample_dirichlet", floats().abs())
    yield from each("_weight_norm", floats(), numbers(2, 1))
    yield from each("_grouped_mm", numbers(2, 8, 8).bfloat16(), numbers(2, 8, 8).bfloat16())
    yield from each("segment_reduce", numbers(4), "sum", lengths=torch.tensor([1, 3]))
    yield from each("_C._nn.pad_sequence", [numbers(2), numbers(3)], True, 0.0)
    yield from each("_pack_padded_sequence", numbers(2, 3, 1), torch.tensor([3, 2]), True)
    yield from each("_pad_packed_sequence", numbers(5, 1), torch.tensor([2, 2, 1]), True, 0.0, 3)


def with_elements() -> Iterator[Case]:
    """Yield samples of operations for which torch's first samples have no elements."""
    yield from each("svd Tensor.svd linalg.svd", numbers(5, 3))
    yield from each("svd Tensor.svd linalg.svd", numbers(2, 3, 5), False)
    yield from each("cholesky_inverse Tensor.cholesky_inverse", square().tril())
    yield from each("cholesky_solve Tensor.cholesky_solve", floats().mT, square().tril())
    yield from each("searchsorted", torch.tensor([1.0, 2.0, 3.0]), floats())
    yield from each("nn.functional.unfold", numbers(1, 2, 4, 4), 2)


def pooling() -> Iterator[Case]:
    for n in (1, 2, 3):
        x = numbers(1, 2, *[6] * n)
        yield from each(f"nn.functional.adaptive_max_pool{n}d_with_indices", x, 2)
        yield from each(f"max_pool{n}d nn.functional.max_pool{n}d_with_indices nn.functional.max_pool{n}d", x, 2)
        yield from each(f"nn.functional.lp_pool{n}d", x.abs(), 2.0, 2)
        yield from each(f"nn.functional.dropout{n}d", x)
    yield from each("adaptive_max_pool1d", numbers(1, 2, 6), 2)
    yield from each("max_pool1d_with_indices", numbers(1, 2, 6), 2)
    for n in (2, 3):
        name = f"nn.functional.fractional_max_pool{n}d"
        yield from each(f"{name} {name}_with_indices", numbers(1, 2, *[6] * n), 2, output_size=3)


def networks() -> Iterator[Case]:
    x, ones = numbers(2, 3, 4), torch.ones(3)
    yield from each("batch_norm", x, ones, ones, None, None, True, 0.1, 1e-5, False)
    yield from each("instance_norm", x, ones, ones, None, None, True, 0.1, 1e-5, False)
    yield from each("batch_norm_update_stats", x, ones, ones, 0.1)
    yield from each("native_dropout", x, 0.5, True)
    yield from do("eye", lambda out: torch.eye(2, 3, out=out), floats())
    attention = numbers(12, 4), numbers(12), numbers(4, 4), numbers(4)
    yield from each("_native_multi_head_attention", x, x, x, 4, 2, *attention)
    norms, widths = [torch.ones(4), torch.zeros(4)] * 2, [numbers(8, 4), numbers(8), numbers(4, 8), numbers(4)]
    yield from each("_transformer_encoder_layer_fwd", x, 4, 2, *attention, False, False, 1e-5, *norms, *widths)
    yield from each("_nested_tensor_from_mask", x, torch.ones(2, 3, dtype=torch.bool))
    yield from each("affine_grid_generator nn.functional.affine_grid", numbers(1, 2, 3), [1, 1, 2, 2], False)
    yield from each("grid_sampler", numbers(1, 1, 3, 3), numbers(1, 2, 2, 2), 0, 0, False)
    yield from each("convolution", x, numbers(2, 3, 2), None, [1], [0], [1], False, [0], 1)
    yield from each("nn.functional.conv_tbc", x, numbers(2, 4, 5), numbers(5))
    yield from each("nn.functional.native_channel_shuffle", numbers(1, 4, 2, 2), 2)
    yield from each("nn.functional.fold", numbers(1, 4, 4), (3, 3), (2, 2))
    yield from each("nn.functional.gumbel_softmax", floats())
    yield from each("nn.functional.embedding", torch.tensor([[0, 1], [1, 0]]), floats())
    yield from each("embedding_bag", floats(), torch.tensor([0, 1, 1]), torch.tensor([0, 2]))
    log_probs = numbers(4, 1, 3).log_softmax(-1)
    yield from each("ctc_loss", log_probs, torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2]))
    yield from each("ctc_loss", log_probs, torch.tensor([[1, 2]]), [4], [2])
    yield from each("kl_div", floats(), floats().abs())
    yield from each("poisson_nll_loss", floats(), floats().abs(), True, False, 1e-8, 1)
    signs = torch.tensor([1.0, -1.0])
    yield from each("cosine_embedding_loss", floats(), floats().flip(0), signs)
    yield from each("margin_ranking_loss", numbers(2), numbers(2).flip(0), signs)
    yield from recurrent()


def recurrent() -> Iterator[Case]:
    for name, gates in {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}.items():
        x, h = numbers(2, 3, 4), numbers(1, 3, 5)
        weights = [numbers(5 * gates, 4), numbers(5 * gates, 5)]
        state = [h, h] if name == "lstm" else h
        yield from each(name, x, state, weights, False, 1, 0.0, False, False, False)
        cell_state = [h[0], h[0]] if name == "lstm" else h[0]
        yield from each(f"{name}_cell", x[0], cell_state, *weights)


UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round "
    "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)


def lists_of_tensors() -> Iterator[Case]:
    def two() -> list[torch.Tensor]:
        return [numbers(2, 2).abs() + 0.1, numbers(3).abs() / 2 + 0.1]

    yield from each(" ".join(f"_foreach_{n} _foreach_{n}_" for n in UNARY.split()), two())
    yield from each("_foreach_zero_ _foreach_clone _foreach_norm _foreach_max _foreach_powsum", two())
    binary = "add sub mul div clamp_max clamp_min maximum minimum pow"
    for other in (two(), 2.0, [2.0, 3.0]):
        yield from each(" ".join(f"_foreach_{n} _foreach_{n}_" for n in binary.split()), two(), other)
    yield from each("_foreach_copy_", two(), two())
    yield from each("_foreach_mm", [square()], [square()])
    yield from each("_foreach_lerp _foreach_lerp_", two(), two(), 0.5)
    yield from each("_foreach_lerp _foreach_lerp_", two(), two(), two())
    ternary = "_foreach_addcmul _foreach_addcmul_ _foreach_addcdiv _foreach_addcdiv_"
    yield from each(ternary, two(), two(), two(), 0.5)
    yield from each(ternary, two(), two(), two(), [0.5, 2.0])


def optimizer_steps() -> Iterator[Case]:
    def lists(count: int) -> list[list[torch.Tensor]]:
        return [[numbers(3).abs()] for _ in range(count)]

    step = [torch.tensor(1.0)]
    common = {"lr": 0.1, "weight_decay": 0.01, "maximize": False}
    betas = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "amsgrad": False}
    yield from each("_fused_adam_ _fused_adamw_", *lists(4), [], step, **common, **betas)
    yield from each("_fused_adagrad_", *lists(3), step, **common, lr_decay=0.0, eps=1e-8)
    momentum = {"momentum": 0.9, "dampening": 0.0, "nesterov": False, "is_first_step": False}
    yield from each("_fused_sgd_", *lists(3), **common, **momentum)
    zero, one = torch.tensor([0.0]), torch.tensor([2.0])
    yield from each("_amp_foreach_non_finite_check_and_unscale_", *lists(1), zero, one)
    yield from each("_amp_update_scale_", one, torch.tensor([0], dtype=torch.int32), zero, 2.0, 0.5, 2)


def elsewhere() -> Iterator[Case]:
    """Yield operations that this machine cannot run: a chain must raise torch's own error."""
    yield from each("Tensor.cuda Tensor.xpu Tensor.ipu Tensor.mtia", floats())
    yield from each("Tensor.index", floats(), 0, 0)
    yield from each("Tensor._nested_tensor_strides Tensor._nested_tensor_storage_offsets", floats())
    yield from each("Tensor.eig Tensor.symeig", square())
    yield from each("Tensor.lstsq Tensor.solve", square(), square())
    image, kernel, ones = numbers(1, 2, 4, 4), numbers(2, 2, 2, 2), torch.ones(2)
    one, two, none = [1, 1], [2, 2], [0, 0]
    yield from each("miopen_batch_norm", image, ones, ones, ones, ones, True, 0.1, 1e-5)
    yield from each(
        "miopen_convolution miopen_depthwise_convolution", image, kernel, None, none, one, one, 1, False, False
    )
    yield from each("miopen_convolution_transpose", image, kernel, None, none, none, one, one, 1, False, False)
    yield from each("miopen_convolution_relu", image, kernel, None, one, none, one, 1)
    yield from each("miopen_convolution_add_relu", image, kernel, image, 1.0, None, one, none, one, 1)
    yield from each(
        "miopen_rnn", numbers(2, 1, 2), [kernel], 4, image, None, 0, 2, 1, False, 0.0, False, False, two, None
    )
    yield from each("batch_norm_stats", image, 1e-5)
    yield from each("batch_norm_elemt", image, ones, ones, ones, ones, 1e-5)
    yield from each("batch_norm_gather_stats", image, image, image, ones, ones, 0.1, 1e-5, 4)
    yield from each("batch_norm_gather_stats_with_counts", image, image, image, ones, ones, 0.1, 1e-5, ones)
    yield from each("batch_norm_backward_reduce", image, image, ones, ones, ones, True, True, True)
    yield from each("batch_norm_backward_elemt", image, image, ones, ones, ones, ones, ones, ones)


def of_other_torches() -> Iterator[Case]:
    """Yield samples for other versions of torch."""
    yield from each("alias_copy squeeze_copy t_copy unbind_copy", floats())
    yield from each("as_strided_copy", floats(), (2, 2), (1, 2))
    yield from each("expand_copy", floats(), (2, 2, 3))
    yield from each("permute_copy", floats(), (1, 0))
    yield from each("transpose_copy", floats(), 0, 1)
    yield from each("unsqueeze_copy", floats(), 0)
    yield from each("grid_sampler_3d", numbers(1, 1, 3, 3, 3), numbers(1, 2, 2, 2, 3), 0, 0, False)
    yield from each("native_group_norm", numbers(2, 4, 3), torch.ones(4), torch.zeros(4), 2, 4, 3, 2, 1e-5)
    yield from each("Tensor.has_names", floats())
    scale = [torch.ones(1)]
    yield from each("_scaled_addmm_", square(), square(), square(), scale, [0], [0], scale, [0], [0])
    # `torch.foreach` (2.15) is the public form of `torch._foreach_…`; some of its arguments are keyword-only.
    for case in lists_of_tensors():
        name = case.op.removeprefix("torch.").replace("_foreach_", "foreach.")
        if "addc" not in name:
            yield from each(name, *case.args)
        else:
            yield from each(name, *case.args[:3], value=case.args[3])
