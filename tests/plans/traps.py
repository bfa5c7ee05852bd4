"""Functions of a tensor of any length that a recording could freeze at the length with which it was made.

``RIGHT`` are computed from the length in each call. ``DECIDED`` are right for lengths for which the same is decided as
in the recording, and refused for others. ``FIXED`` need the length as a number of Python: a plan for any length refuses
them.
"""

from __future__ import annotations

import enum
import functools
import json
import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")


class Size(enum.IntEnum):
    """Sizes with names."""

    FOUR = 4


@functools.cache
def double(n: int) -> float:
    return 2.0 * n


TABLE = {n: float(n) + 0.5 for n in range(200)}


def ghost_norm(x: Any, size: int = 4) -> Any:
    parts = [x[start : start + size] for start in range(0, x.shape[0], size)]
    return torch.cat([part - part.mean(0) for part in parts])


def unpacked(x: Any) -> Any:
    rows, columns = x.shape
    return x.reshape(columns, rows).t() / (rows + columns)


def loop(x: Any) -> Any:
    total = x[0] * 0
    for place in range(len(x)):
        total = total + x[place] * place
    return total


def rows(x: Any) -> Any:
    total = x[0] * 0
    for row in x:
        total = 0.5 * total + row
    return total


def caught_view(x: Any) -> Any:
    try:
        return x.view(x.shape[0] // 2, 2, 4).sum(1)
    except RuntimeError:
        return x * 3


def until_enough(x: Any) -> Any:
    while x.shape[0] < 5:
        x = torch.cat([x, x])
    return x


RIGHT: dict[str, Callable[[Any], Any]] = {
    "half by slice": lambda x: x[: x.shape[0] // 2] * 2,
    "last half by size": lambda x: x[x.size(0) // 2 :].sum(0),
    "negative slice": lambda x: x[-(x.shape[0] // 2 + 1) :],
    "divide by shape": lambda x: x.sum(0) / x.shape[0],
    "divide by size": lambda x: x.sum(0) / x.size(0),
    "divide by size by name": lambda x: x.sum(0) / x.size(dim=0),
    "divide by size from the end": lambda x: x.sum(0) / x.size(-2),
    "divide by size at a computed place": lambda x: x.sum(0) / (x + 1).size((x + 1).dim() - 2),
    "divide by stride at a computed place": lambda x: x.sum(0) / (x + 1).stride((x + 1).dim() - 2),
    "size at a place read from a size": lambda x: x.sum(0) / (x + 1).size((x + 1).size(1) - 4),
    "divide by numel": lambda x: x.sum(0) / x.numel(),
    "divide by torch.numel": lambda x: x.sum(0) / torch.numel(x),
    "divide by nbytes": lambda x: x.sum(0) / x.nbytes,
    "unbiased": lambda x: (x - x.mean(0)).square().sum(0) / (x.shape[0] + 1),
    "square root by power": lambda x: x.sum(0) / x.shape[0] ** 0.5,
    "power": lambda x: x.sum(0) * x.shape[0] ** 2 / 7,
    "reversed": lambda x: (10 - x.shape[0]) * x.sum(0) / (3 + x.shape[0]),
    "modulo": lambda x: x * (x.shape[0] % 4),
    "divmod": lambda x: x * divmod(x.shape[0], 4)[0] + divmod(x.shape[0], 3)[1],
    "ceil": lambda x: x[: math.ceil(x.shape[0] / 2)],
    "floor": lambda x: x[: math.floor(x.shape[0] / 3)].sum(0),
    "trunc": lambda x: x * math.trunc(x.shape[0] / 4),
    "rounded": lambda x: x * round(x.shape[0] / 3),
    "absolute": lambda x: x * abs(4 - x.shape[0]),
    "negative": lambda x: x * -x.shape[0],
    "product of the shape": lambda x: x / math.prod(x.shape),
    "view": lambda x: x.view(x.shape[0], -1) + 1,
    "view by size": lambda x: x.view(x.size()) + 1,
    "view by shape": lambda x: (x * 2).view(x.shape),
    "view of a part of the shape": lambda x: x.view(*x.shape[:1], 2, 2).sum(2),
    "view by a list": lambda x: x.view([x.shape[0], 2, 2]).sum(1),
    "reshape": lambda x: torch.reshape(x, (x.shape[0] * 2, 2)).sum(1),
    "flatten and unflatten": lambda x: x.flatten().unflatten(0, (x.shape[0], 4)),
    "expand": lambda x: x.mean(0, keepdim=True).expand(x.shape[0], -1) + x,
    "repeat": lambda x: x[:1].repeat(x.shape[0], 1) * x,
    "narrow": lambda x: x.narrow(0, 0, (x.shape[0] + 1) // 2),
    "shape of a result": lambda x: torch.relu(x).sum(0) / torch.relu(x[1:]).shape[0].__add__(2),
    "arange": lambda x: x * torch.arange(x.shape[0]).unsqueeze(1),
    "float arange": lambda x: x * torch.arange(x.shape[0], dtype=torch.float32).unsqueeze(1) / x.shape[0],
    "eye": lambda x: torch.eye(x.shape[0]) @ x,
    "ones": lambda x: torch.ones(x.shape[0]) @ x,
    "zeros by shape": lambda x: torch.zeros(x.shape) + x,
    "full": lambda x: torch.full((x.shape[0], 4), 1.0 / x.shape[0]) * x,
    "full of a length": lambda x: torch.full((4,), x.shape[0]) * x,
    "linspace": lambda x: torch.linspace(0, 1, x.shape[0]).unsqueeze(1) * x,
    "new zeros": lambda x: x.new_zeros(x.shape[0], 4) + x,
    "new full": lambda x: x.new_full((x.shape[0],), 2.0).unsqueeze(1) * x,
    "triangle": lambda x: torch.tril(torch.ones(x.shape[0], x.shape[0])) @ x,
    "tensor of the length": lambda x: x / torch.tensor(float(2)) / x.shape[0],
    "rolled": lambda x: x.roll(x.shape[0] // 2, 0),
    "cut in place": lambda x: x.clone().mul_(x.shape[0]),
    "fill in place": lambda x: torch.zeros_like(x).fill_(x.shape[0]) * x,
    "set items": lambda x: torch.zeros_like(x).index_fill(1, torch.tensor([0]), 1.0 / x.shape[0]) * x,
    "addition with alpha": lambda x: torch.add(x, x, alpha=1 / x.shape[0]),
    "clamp": lambda x: x.clamp(max=1 / x.shape[0]),
    "transposed": lambda x: (x.t() @ x) / x.t().shape[1],
    "unpacked": unpacked,
    "same lengths": lambda x: x * 2 if x.shape[0] == (x + 1).shape[0] else x,
    "a flag": lambda x: x * (x.shape[0] * True),
    "a number of an enum": lambda x: x * (x.shape[0] + Size.FOUR),
    "a number of numpy": lambda x: x / (x.shape[0] * numpy.float64(2.0)),
    "rank": lambda x: x.sum(0) if x.dim() == 2 else x,
    "columns": lambda x: sum(x[:, place] * place for place in range(x.shape[1])),
    "a loop over columns": lambda x: torch.stack([column / 2 for column in x.unbind(1)]),
    "a mean": lambda x: torch.nn.functional.mse_loss(x, x * 0, reduction="sum") / x.shape[0],
}
DECIDED: dict[str, Callable[[Any], Any]] = {
    "a branch": lambda x: x * 2 if x.shape[0] >= 4 else x * 3,
    "a maximum": lambda x: x.sum(0) / max(x.shape[0], 4),
    "a minimum": lambda x: x[: min(x.shape[0], 4)],
    "a maximum of a quotient": lambda x: x / max(1, x.shape[0] // 4),
    "a maximum of sizes": lambda x: x * max(x.shape),
    "a sorted list": lambda x: x * sorted([x.shape[0], 5])[0],
    "an assertion of numel": lambda x: x * 2 if x.numel() > 10**6 else x * 3,
    "truth": lambda x: x + 1 if x.shape[0] // 8 else x - 1,
    "a chain": lambda x: x + 1 if 1 < x.shape[0] < 8 else x - 1,
    "until enough": until_enough,
    "an enum": lambda x: x * 2 if x.shape[0] == Size.FOUR else x * 3,
    "a number of numpy to compare with": lambda x: x * 2 if x.shape[0] > numpy.float64(3.5) else x * 3,
    "chunks": lambda x: x.chunk(3)[0] * 2,
    "splits": lambda x: x.split(4)[0] * 2,
    "ghost norm of a chunk": lambda x: torch.cat([part - part.mean(0) for part in x.split(4)]),
    "squeezed": lambda x: x[:, :1].squeeze().dim() * x,
}
FIXED: dict[str, Callable[[Any], Any]] = {
    "len": lambda x: x.sum(0) / len(x),
    "half by len": lambda x: x[: len(x) // 2] * 2,
    "a maximum of len": lambda x: x * max(1, len(x) // 4),
    "range of len": loop,
    "iteration": rows,
    "iteration over a list": lambda x: torch.stack(list(x)),
    "arange of len": lambda x: x * torch.arange(len(x)).unsqueeze(1),
    "new zeros of len": lambda x: x.new_zeros(len(x), 4) + x,
    "ghost norm": ghost_norm,
    "square root": lambda x: x.sum(0) / math.sqrt(x.shape[0]),
    "logarithm": lambda x: x * math.log(x.shape[0] + 1),
    "int of a quotient": lambda x: x * int(math.sqrt(x.shape[0] / 1)),
    "float": lambda x: x / float(x.shape[0]),
    "text": lambda x: x * float(f"{x.shape[0]}"),
    "text in a key": lambda x: x * {f"{n}": n for n in range(100)}[f"{x.shape[0]}"],
    "repr": lambda x: x * len(repr(x.shape)),
    "percent": lambda x: x * len("%d" % (10 ** x.shape[0])),  # noqa: UP031  # as programs do
    "an index of a list": lambda x: x * list(TABLE.values())[x.shape[0]],
    "a key of a dict": lambda x: x * TABLE[x.shape[0]],
    "membership": lambda x: x * 2 if x.shape[0] in {4, 8} else x,
    "bits": lambda x: x * (x.shape[0] & 4),
    "a shift": lambda x: x * (x.shape[0] >> 2),
    "bit length": lambda x: x * x.shape[0].bit_length(),
    "numpy root": lambda x: x / float(numpy.sqrt(float(x.shape[0]))),
    "numpy of a list": lambda x: x * torch.from_numpy(numpy.arange(int(x.shape[0]), dtype=numpy.float32)).unsqueeze(1),
    "numpy root of a length": lambda x: x / numpy.sqrt(x.shape[0]),
    "numpy range of a length": lambda x: x * torch.as_tensor(numpy.arange(x.shape[0])).unsqueeze(1),
    "a type": lambda x: x * 2 if type(x.shape[0]) is int else x * 3,
    "an exact type in a set": lambda x: x * 2 if type(x.shape[0] // 2) in {int, float} else x * 3,
    "JSON": lambda x: x * len(json.dumps([x.shape[0]])),
    "a mean of statistics": lambda x: x * statistics.mean([x.shape[0], 2]),
    "a function of symbolic numbers": lambda x: torch.zeros(torch.broadcast_shapes(x.shape, (1, 4))) + x,
    "a cached function": lambda x: x * double(x.shape[0]),
    "numpy zeros": lambda x: x + torch.from_numpy(numpy.ones((x.shape[0], 4), dtype=numpy.float32)),
    "a list times a length": lambda x: x * torch.tensor([1.0] * x.shape[0]).unsqueeze(1),
    "slices of a list": lambda x: x * sum(list(TABLE)[: x.shape[0]]),
    "gcd": lambda x: x * math.gcd(x.shape[0], 4),
    "a caught error": caught_view,
    "unbind": lambda x: sum(x.unbind(0)),
    "as many chunks": lambda x: torch.stack(x.chunk(x.shape[0])).sum(0),
    "mask": lambda x: x[[True] + [False] * (len(x) - 1)],
}
