"""NumpyKernels: integer arithmetic of protocols on numpy arrays."""

from __future__ import annotations

import numpy as np

from syft_mpc.kernels import NumpyLikeKernels


class NumpyKernels(NumpyLikeKernels):
    """Numpy's own functions."""

    def __init__(self) -> None:
        super().__init__(np)


KERNELS = NumpyKernels()
