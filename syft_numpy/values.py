"""Type aliases for arrays and dtypes of any element type."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

DType: TypeAlias = np.dtype[Any]
"""A dtype of any kind."""

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""A plain array of any shape and dtype."""
