"""Alternatives to numpy's functions, and to operations that encoded numbers do not have; errors name them."""

from __future__ import annotations

from collections.abc import Container, Mapping

_BY_ALTERNATIVE = {
    "use `torch.amax` or `torch.amin` of each prefix": "cummax cummin _cummax_helper _cummin_helper",
    "write `x.exp().cumsum(dim).log()`": "logcumsumexp _logcumsumexp",
    "keep all elements and multiply by a mask: `x * (x > 0)`": "nonzero nonzero_static argwhere",
    "compare with each public value: `(x.unsqueeze(-1) == values).sum(0)`": (
        "_unique2 unique_dim unique_consecutive unique_dim_consecutive bincount mode isin histogram "
        "_histogramdd_bin_edges _histogramdd_from_bin_tensors"
    ),
    "count smaller edges: `(x.unsqueeze(-1) > edges).sum(-1)`": "searchsorted",
    "compare the difference: `(x - y).abs() < 0.01`": "allclose isclose",
    "solve linear systems with `torch.linalg.solve` or `torch.linalg.inv`": (
        "linalg_qr qr geqrf ormqr linalg_householder_product linalg_cholesky_ex cholesky _linalg_svd svd _linalg_eigh "
        "linalg_eig linalg_lu linalg_lu_factor_ex lu_unpack linalg_ldl_factor_ex linalg_ldl_solve _linalg_det "
        "_linalg_slogdet cholesky_inverse"
    ),
    "multiply by the inverse: `torch.linalg.inv(a) @ b`": "linalg_solve_triangular triangular_solve cholesky_solve",
    "solve the normal equations: `torch.linalg.solve(a.T @ a, a.T @ b)`": "linalg_lstsq",
    "write `torch.linalg.inv(a.T @ a) @ a.T`": "linalg_pinv",
    "add the first terms of the series": "linalg_matrix_exp",
    "leave out `max_norm`, and normalize the table once": "embedding_renorm",
    "use `torch.nn.functional.cross_entropy`": (
        "_ctc_loss multi_margin_loss_backward multilabel_margin_loss_forward "
        "_linear_cross_entropy_batch_chunked _linear_cross_entropy_batch_chunked_no_reduction"
    ),
    "use `torch.cdist(x, x)`": "_pdist_forward",
    "apply the two-dimensional operation to slices, and combine neighbouring ones": (
        "max_pool3d_with_indices avg_pool3d adaptive_max_pool3d _adaptive_avg_pool3d fractional_max_pool3d "
        "upsample_trilinear3d upsample_nearest3d reflection_pad3d replication_pad3d max_unpool3d"
    ),
    "use `max_pool2d`": "fractional_max_pool2d max_unpool2d",
    "choose a size of which the image is a multiple, or use `max_pool2d`": "adaptive_max_pool2d",
    "use `torch.nn.functional.interpolate` with nearest neighbours": "grid_sampler_2d grid_sampler_3d",
    "use `torch.nn.functional.leaky_relu`": "rrelu_with_noise",
    "write `((1 + x) / (1 - x)).log() / 2`": "atanh",
    "write `(x + (x * x + 1).sqrt()).log()`": "asinh",
    "write `(x + (x * x - 1).sqrt()).log()`": "acosh",
    "approximate it with a polynomial": (
        "acos asin atan atan2 lgamma digamma polygamma mvlgamma erfinv i0 igamma igammac sinc"
    ),
    "multiply by the matrix of the transform": "_fft_r2c _fft_c2c _fft_c2r",
    "compare with 0: `x < 0`": "signbit",
    "write `x.abs() * y.sign()`": "copysign",
    "use `scatter_add` or `index_add`": "scatter_reduce index_reduce segment_reduce",
    "use `index_put`, or `x[mask] = y`": "masked_scatter put",
    "use `median`: encoded numbers are never NaN": "nanmedian",
    "draw plain random numbers, for instance `torch.rand(x.shape)`": (
        "normal multinomial uniform random exponential geometric cauchy log_normal _standard_gamma"
    ),
    "use `view`, `unfold` or slices": "as_strided as_strided_copy as_strided_scatter resize_ resize_as_",
    "use slices: `y = x.clone(); y[...] = z`": "slice_scatter select_scatter diagonal_scatter",
    "keep the real and the imaginary part in two tensors": "complex polar view_as_complex angle",
    "multiply by `2 ** k`": "ldexp bitwise_left_shift",
}
ALTERNATIVES: Mapping[str, str] = {
    operation: alternative for alternative, operations in _BY_ALTERNATIVE.items() for operation in operations.split()
}


LIKE_NUMPY: Mapping[str, str] = {
    "std": "std({}, correction=0)",
    "var": "var({}, correction=0)",
    "median": "quantile({}, 0.5)",
    "nanmedian": "nanquantile({}, 0.5)",
    "sort": "sort({}).values",
    "nonzero": "nonzero({}, as_tuple=True)",
    "cumsum": "cumsum({}.flatten(), 0)",
    "cumprod": "cumprod({}.flatten(), 0)",
    "split": "tensor_split({}, 1)",
    "array_split": "tensor_split({}, 1)",
    "flip": "flip({0}, [*range({0}.ndim)])",
    "transpose": "permute({0}, [*range({0}.ndim)][::-1])",
    "meshgrid": "meshgrid({0}, {0}, indexing='xy')",
}
"""Calls of torch that compute the same as functions of numpy whose namesakes in torch do not."""


def name_instead_of_numpy(function: str, is_alone: bool, variable: str, known: Container[str]) -> str:
    """Return advice to use torch instead of a function of numpy, or an empty text.

    ``is_alone`` says that the tensor is its only argument, ``known`` are the names of torch's functions.
    """
    if (line := LIKE_NUMPY.get(function)) is not None:
        return f"use `torch.{line.format(variable)}`, or "
    if (name := f"torch.{function}") not in known:
        return ""
    return f"use `{name}({variable})`, or " if is_alone else f"use {name} with the same arguments, or "
