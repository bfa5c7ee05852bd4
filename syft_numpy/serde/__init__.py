"""Codecs for numpy: arrays, array scalars and dtypes; never arrays of Python objects."""

from __future__ import annotations

import numpy as np

from syft_core.serde import CodecTable, register_failure, register_scalar_type
from syft_core.tensors.codecs import build_wrapper_codec
from syft_numpy.serde.array import ARRAY, SCALAR
from syft_numpy.serde.dtypes import DTYPE
from syft_numpy.wrapper import Wrapper, wrap

__all__ = ["CODECS", "register_codecs"]

CODECS = (ARRAY, SCALAR, DTYPE, build_wrapper_codec(Wrapper, 103, wrap))


def register_codecs(table: CodecTable) -> None:
    """Register the codecs, the scalar types (which are used as dtype arguments) and the exceptions of numpy."""
    for codec in CODECS:
        table.register(codec)
    for kind in {np.dtype(char).type for char in "?bBhHiIlLqQefdgFDGSUVMm"}:
        register_scalar_type(kind)
    exceptions = np.exceptions if hasattr(np, "exceptions") else np
    for error in (np.linalg.LinAlgError, exceptions.AxisError):
        register_failure(error)
