"""Warn of optimizers that divide by averages of squares which encoded numbers cannot express."""

from __future__ import annotations

import math
import warnings

import torch

from syft_mpc.checking import PrecisionWarning
from syft_mpc.fixed_precision import FixedPrecisionTensor
from syft_torch.numeric import NumericWrapper


def warn_of_small_squares(optimizer: torch.optim.Optimizer) -> None:
    """Warn if an optimizer divides encoded parameters' gradients by averages of their squares, which may vanish.

    The optimizers that do so have ``eps``, a number that keeps the divisor from 0.
    """
    for group in optimizer.param_groups:
        layers = [getattr(p, "child", None) for p in group["params"] if isinstance(p, NumericWrapper)]
        scales = [layer.scale for layer in layers if isinstance(layer, FixedPrecisionTensor)]
        if not scales or "eps" not in group or isinstance(optimizer, torch.optim.Adamax):  # It needs no squares.
            continue
        kept = group["betas"][1] if "betas" in group else group.get("alpha", group.get("rho", 0))
        smallest = math.sqrt(_ROUNDED / (min(scales) * (1 - kept)))
        text = (
            f"{type(optimizer).__name__} divides by averages of squared gradients, and at this precision the squares "
            f"of gradients smaller than {smallest:.1g} are mostly rounding errors: parameters move by wrong amounts, "
            "or not at all; unless you do it already, multiply the loss by a constant, e.g. `(loss * 256).backward()`; "
            "`sy.checking()` shows which results are too small"
        )
        warnings.warn(text, PrecisionWarning, stacklevel=5)  # Where the program calls the step.
        return


_ROUNDED = 10
"""The smallest square, in units, that rounding changes by less than a tenth."""
