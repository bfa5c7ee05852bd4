"""Programs that practitioners write with numpy: they get data through ``t``, and return what to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable[[Any], list[Any]]] = {}


def program(function: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    PROGRAMS[function.__name__] = function
    return function


def draw(*shape: int) -> Any:
    return np.random.RandomState(len(shape) + sum(shape)).standard_normal(shape)


@program
def column_statistics(t: Any) -> list[Any]:
    x = t.send(draw(20, 4))
    return [
        x.mean(0),
        x.std(0, ddof=1),
        np.median(x, axis=0),
        np.percentile(x, [25, 75], axis=0),
        x.min(0),
        x.max(0),
        np.ptp(x, axis=0),
        np.var(x, axis=0),
    ]


@program
def standardize(t: Any) -> list[Any]:
    x = t.send(draw(20, 4))
    return [(x - x.mean(0)) / x.std(0)]


@program
def minmax(t: Any) -> list[Any]:
    x = t.send(draw(20, 4))
    return [(x - x.min(0)) / (x.max(0) - x.min(0))]


@program
def covariance(t: Any) -> list[Any]:
    x = t.send(draw(20, 4))
    return [np.cov(x, rowvar=False), np.corrcoef(x.T)]


@program
def covariance_by_hand(t: Any) -> list[Any]:
    x = t.send(draw(20, 4))
    c = x - x.mean(0)
    return [c.T @ c / (len(x) - 1)]


@program
def regression(t: Any) -> list[Any]:
    x, y = t.send(draw(20, 3)), t.send(draw(20))
    return [np.linalg.solve(x.T @ x, x.T @ y)]


@program
def lstsq(t: Any) -> list[Any]:
    x, y = t.send(draw(20, 3)), t.send(draw(20))
    return [np.linalg.lstsq(x, y, rcond=None)[0]]


@program
def pinv(t: Any) -> list[Any]:
    x, y = t.send(draw(20, 3)), t.send(draw(20))
    return [np.linalg.pinv(x) @ y]


@program
def polyfit(t: Any) -> list[Any]:
    x, y = t.send(draw(20)), t.send(draw(20))
    return [np.polyfit(x, y, 2)]


@program
def pca(t: Any) -> list[Any]:
    x = t.send(draw(20, 4))
    x = x - x.mean(0)
    u, s, v = np.linalg.svd(x, full_matrices=False)
    return [s, np.abs(u), np.abs(x @ v[:2].T)]


@program
def pca_eigh(t: Any) -> list[Any]:
    x = t.send(draw(20, 4))
    c = x - x.mean(0)
    w, v = np.linalg.eigh(c.T @ c)
    return [w, np.abs(v)]


@program
def kmeans(t: Any) -> list[Any]:
    x = t.send(draw(20, 2))
    c = x[:3]
    for _ in range(4):
        d = ((x[:, None] - c[None]) ** 2).sum(-1)
        a = d.argmin(1)
        one = (a[:, None] == t.send(np.arange(3))).astype(float)
        c = (one.T @ x) / np.maximum(one.sum(0), 1)[:, None]
    return [c, a]


@program
def logistic(t: Any) -> list[Any]:
    x, y = t.send(draw(20, 3)), t.send((draw(20) > 0).astype(float))
    w = np.zeros_like(x[0])
    for _ in range(5):
        w = w - 0.1 * (x.T @ (1 / (1 + np.exp(-(x @ w))) - y)) / len(y)
    return [w]


@program
def masked_mean(t: Any) -> list[Any]:
    x = t.send(draw(20))
    m = x > 0
    return [np.where(m, x, 0).sum() / m.sum(), np.nanmean(np.where(m, x, np.nan)), np.mean(x, where=m)]


@program
def masked_index(t: Any) -> list[Any]:
    x = t.send(draw(20))
    return [x[x > 0].mean()]


@program
def local_mask(t: Any) -> list[Any]:
    x = t.send(draw(20, 2))
    m = np.arange(20) % 3 == 0
    return [x[m], x[~m].mean(0)]


@program
def histogram(t: Any) -> list[Any]:
    x = t.send(draw(20))
    return list(np.histogram(x, bins=4, range=(-2, 2)))


@program
def digitize(t: Any) -> list[Any]:
    x = t.send(draw(20))
    b = t.send(np.array([-1.0, 0, 1.0]))
    return [np.digitize(x, b), np.searchsorted(b, x)]


@program
def bincount(t: Any) -> list[Any]:
    x = t.send(np.array([0, 1, 1, 2, 0]))
    return [np.bincount(x, minlength=4)]


@program
def group_by(t: Any) -> list[Any]:
    g, x = t.send(np.array([0, 1, 0, 2, 1])), t.send(draw(5))
    one = (g[:, None] == t.send(np.arange(3))).astype(float)
    return [one.T @ x / one.sum(0)]


@program
def rolling(t: Any) -> list[Any]:
    x = t.send(draw(20))
    return [np.convolve(x, t.send(np.ones(3) / 3), "valid"), np.cumsum(x), np.diff(x), np.gradient(x)]


@program
def windows(t: Any) -> list[Any]:
    x = t.send(draw(20))
    return [np.lib.stride_tricks.sliding_window_view(x, 3).mean(-1)]


@program
def fft(t: Any) -> list[Any]:
    x = t.send(draw(16))
    return [np.abs(np.fft.rfft(x)), np.fft.irfft(np.fft.rfft(x))]


@program
def sorting(t: Any) -> list[Any]:
    x = t.send(draw(20))
    return [np.sort(x), x.argsort()[:5], np.argpartition(x, 3)[:0], np.partition(x, 3)[3]]


@program
def bootstrap(t: Any) -> list[Any]:
    x = t.send(draw(20))
    r = np.random.RandomState(1)
    return [np.stack([x[r.randint(0, 20, 20)].mean() for _ in range(4)])]


@program
def ttest(t: Any) -> list[Any]:
    a, b = t.send(draw(20)), t.send(draw(21))
    return [(a.mean() - b.mean()) / np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))]


@program
def entropy(t: Any) -> list[Any]:
    x = t.send(np.abs(draw(6)))
    p = x / x.sum()
    return [-(p * np.log(p)).sum()]


@program
def softmax(t: Any) -> list[Any]:
    x = t.send(draw(5, 3))
    e = np.exp(x - x.max(1, keepdims=True))
    return [e / e.sum(1, keepdims=True), np.log(e.sum(1))]


@program
def confusion(t: Any) -> list[Any]:
    a, b = t.send(np.array([0, 1, 2, 1])), t.send(np.array([0, 2, 2, 1]))
    k = t.send(np.arange(3))
    return [((a[:, None, None] == k[:, None]) & (b[:, None, None] == k)).sum(0)]


@program
def onehot(t: Any) -> list[Any]:
    a = t.send(np.array([0, 2, 1]))
    return [t.send(np.eye(3))[a]]


@program
def einsum(t: Any) -> list[Any]:
    a, b = t.send(draw(3, 4)), t.send(draw(4, 5))
    return [np.einsum("ij,jk->ik", a, b), np.tensordot(a, b, 1), np.kron(a, b)]


@program
def power_iteration(t: Any) -> list[Any]:
    x = t.send(draw(4, 4))
    m = x @ x.T
    v = np.ones_like(m[0])
    for _ in range(5):
        v = m @ v
        v = v / np.linalg.norm(v)
    return [v, v @ m @ v]


@program
def nan_handling(t: Any) -> list[Any]:
    x = draw(10)
    x[3] = np.nan
    p = t.send(x)
    return [np.nanmean(p), np.isnan(p).sum(), np.nan_to_num(p), np.where(np.isnan(p), np.nanmedian(p), p)]


@program
def distances(t: Any) -> list[Any]:
    x = t.send(draw(6, 3))
    return [np.sqrt(((x[:, None] - x) ** 2).sum(-1))]


@program
def powers(t: Any) -> list[Any]:
    x = t.send(draw(50) ** 2)
    y = x.copy()
    y **= 0.5
    return [y, x.astype("c16") ** 0.5, 2.0**x, x**x, *[x**power for power in (-1, 0, 0.5, 1, 2, 2.0, 3)]]


@program
def inplace(t: Any) -> list[Any]:
    x = t.send(draw(6))
    x += 1
    x[2] = 0
    x[x < 0] = 0 if 0 else 5
    np.clip(x, 0, 2, out=x)
    return [x]


@program
def stack_split(t: Any) -> list[Any]:
    x = t.send(draw(6, 2))
    a, b = np.split(x, 2)
    return [np.vstack([b, a]), np.concatenate([a, b], 1), np.hstack([a, b]), *np.array_split(x, 4)]


@program
def dates(t: Any) -> list[Any]:
    x = t.send(np.array(["2024-01-01", "2024-03-01"], dtype="datetime64[D]"))
    return [x[1:] - x[:-1], (x - x.min()).astype(int)]


@program
def structured(t: Any) -> list[Any]:
    x = t.send(np.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")]))
    return [x["b"].mean(), x["a"].sum()]


if np.lib.NumpyVersion(np.__version__) >= "2.3.0":  # Older ones convert the array before they call the protocol.

    @program
    def strings(t: Any) -> list[Any]:
        x = t.send(np.array(["ab", "c"]))
        return [np.char.upper(x), np.char.str_len(x)]
