"""Alternatives to operations that encoded numbers do not have; errors name them."""

from __future__ import annotations

from collections.abc import Mapping

_BY_ALTERNATIVE = {
    "use `np.einsum`": "tensordot inner vdot kron cross multi_dot linalg.multi_dot linalg.tensordot",
    "use `np.concatenate` with constants": "pad append insert block",
    "centre the data: `d = x - x.mean(1, keepdims=True)`, then `d @ d.T / (n - 1)`": "cov corrcoef",
    "write `np.sqrt((x * x).sum())`": "norm linalg.norm hypot",
    "multiply by the inverse: `np.linalg.inv(a) @ b`": "solve linalg.solve linalg.tensorsolve",
    "solve the normal equations: `np.linalg.inv(a.T @ a) @ a.T @ b`": "lstsq linalg.lstsq polyfit",
    "write `np.linalg.inv(a.T @ a) @ a.T`": "pinv linalg.pinv",
    "solve linear systems with `np.linalg.inv`": (
        "det qr svd eig eigh eigvals eigvalsh cholesky slogdet linalg.det linalg.qr linalg.svd linalg.eig linalg.eigh "
        "linalg.eigvals linalg.eigvalsh linalg.cholesky linalg.slogdet linalg.cond linalg.matrix_rank"
    ),
    "repeat `@`": "matrix_power linalg.matrix_power",
    "use `np.sort` and take elements": "quantile percentile nanquantile nanpercentile partition argpartition",
    "compare with the edges: `(x[..., None] > edges).sum(-1)`": "searchsorted digitize histogram bincount interp",
    "keep all elements and multiply by a mask: `x * (x > 0)`": "nonzero flatnonzero argwhere count_nonzero",
    "compare with each public value: `(x[..., None] == values).sum(-1)`": "unique isin in1d union1d intersect1d",
    "index with a public mask: `x[mask]`": "extract compress delete",
    "use `np.where`": "select choose piecewise",
    "compare the difference: `np.abs(x - y) < 0.01`": "isclose",
    "leave out the prefix `nan`: encoded numbers are never NaN": "nanmean nansum nanmax nanmin nanstd nanvar nanmedian",
    "use `np.sum`, `np.max` or `np.min`": (
        "reduce accumulate reduceat add.reduce maximum.reduce minimum.reduce logical_and.reduce"
    ),
    "use `np.cumsum`": "add.accumulate",
    "use `np.cumprod`": "multiply.accumulate vander",
    "write `x.max(axis) - x.min(axis)`": "ptp",
    "write it with `np.exp`": "sinh cosh logaddexp logaddexp2 exp2",
    "approximate it with a polynomial": "arcsin arccos arctan arctan2 arcsinh arccosh arctanh cbrt sinc i0 tan",
    "use differences of slices: `x[1:] - x[:-1]`": "ediff1d gradient trapezoid trapz",
    "add products of slices": "convolve correlate polyval",
    "compare with 0: `x < 0`": "signbit heaviside",
    "use `x ** 2` and the like": "float_power",
    "use `x[..., None]` or `reshape`": "atleast_3d atleast_2d atleast_1d meshgrid",
    "call the function with `axis=`": "apply_along_axis apply_over_axes vectorize",
    "index with plain integers: `x[rows, columns]`": "take_along_axis put_along_axis",
}
ALTERNATIVES: Mapping[str, str] = {
    operation: alternative for alternative, operations in _BY_ALTERNATIVE.items() for operation in operations.split()
}
