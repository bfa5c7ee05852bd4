"""Register toy's types with hook_args."""

from __future__ import annotations

from typing import Any

import toy

from syft_core.hook.hook_args import (
    get_child,
    one,
    register_backward_func,
    register_forward_func,
    register_type_rule,
    reject_framework_tensor,
)
from syft_toy.wrapper import Wrapper


def wrap_plain(child: Any, **_attributes: Any) -> Wrapper:
    """Wrap ``child``."""
    return Wrapper(child)


register_type_rule({toy.Vector: one, Wrapper: one})
register_forward_func({toy.Vector: reject_framework_tensor, Wrapper: get_child})
register_backward_func({toy.Vector: wrap_plain, Wrapper: wrap_plain})
