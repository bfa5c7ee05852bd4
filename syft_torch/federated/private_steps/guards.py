"""Operations that fail because of a value: such values are replaced, and their samples do not count.

An error would take the whole batch away, and so reveal the value; no clipping bounds that.
"""

from __future__ import annotations

import torch

from syft_core.values import Args, Kwargs, Tensor

_TARGETS = ("input", "target")
_PLACES = {
    "torch.nn.functional.embedding": ("input", "weight"),
    "torch.nn.functional.one_hot": ("tensor", "num_classes"),
    "torch.nn.functional.cross_entropy": _TARGETS,
    "torch.nn.functional.nll_loss": _TARGETS,
    "torch.nn.functional.binary_cross_entropy": _TARGETS,
    **dict.fromkeys(("torch.gather", "torch.Tensor.gather"), ("input", "dim", "index")),
}
"""The names of the first arguments of these operations."""


def replace_invalid(name: str, args: Args, kwargs: Kwargs, length: int, flags: list[Tensor]) -> tuple[Args, Kwargs]:
    """Return arguments without values for which an operation fails.

    Add to ``flags`` which samples of a batch of this length have no such values.
    """
    order = _PLACES[name]
    found, given = list(args), {**dict(zip(order, args, strict=False)), **kwargs}
    for place, (low, high) in _find_limits(name, given).items():
        values = given[place]
        is_valid = (values >= low) & (values <= high)
        valid = torch.where(is_valid, values, low)
        flags.append(is_valid if is_valid.shape == (length,) else is_valid.reshape(length, -1).all(1))
        if place in kwargs:
            kwargs = {**kwargs, place: valid}
        else:
            found[order.index(place)] = valid
    return tuple(found), kwargs


def _find_limits(name: str, given: Kwargs) -> dict[str, tuple[float, float]]:
    """Return the least and the largest value of each argument for which an operation does not fail."""
    short = name.rpartition(".")[2]
    if short == "embedding":
        return {"input": (0, given["weight"].shape[0] - 1)}
    if short == "one_hot":
        return {"tensor": (0, given["num_classes"] - 1)}
    if short == "gather":
        return {"index": (0, given["input"].shape[given["dim"]] - 1)}
    if short == "binary_cross_entropy":
        return {"input": (0, 1), "target": (0, 1)}
    return {"target": (0, given["input"].shape[1] - 1)}
