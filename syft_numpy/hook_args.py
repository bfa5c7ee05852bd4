"""Register numpy's types for unwrapping and wrapping."""

from __future__ import annotations

import numpy as np

from syft_core.hook.folds import get_child, one
from syft_core.hook.hook_args import (
    register_backward_func,
    register_forward_func,
    register_type_rule,
    reject_framework_tensor,
)
from syft_numpy.wrapper import Wrapper, wrap

register_type_rule({np.ndarray: one, np.generic: one, Wrapper: one})
register_forward_func({np.ndarray: reject_framework_tensor, np.generic: reject_framework_tensor, Wrapper: get_child})
register_backward_func({np.ndarray: wrap, Wrapper: wrap})
