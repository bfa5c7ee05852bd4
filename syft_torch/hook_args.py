"""Register torch's types with hook_args, and keep its names from 0.1."""

from __future__ import annotations

import torch

from syft_core.hook.folds import zero
from syft_core.hook.hook_args import *  # noqa: F403  # this module re-exports everything under its old path
from syft_core.hook.hook_args import (
    build_unwrap_args_from_function,
    build_unwrap_args_with_rules,
    build_wrap_response_from_function,
    build_wrap_response_with_rules,
    get_child,
    one,
    register_backward_func,
    register_forward_func,
    register_type_rule,
    reject_framework_tensor,
    unwrap_args_from_function,
    unwrap_args_from_method,
)
from syft_core.hook.hook_args import register_tensor as _register_tensor
from syft_core.values import Tensor
from syft_core.workers.party.base import BaseWorker
from syft_torch.numeric import NumericWrapper, wrap_numeric
from syft_torch.wrapper import Wrapper

hook_method_args = unwrap_args_from_method
hook_function_args = unwrap_args_from_function
build_hook_args_function = build_unwrap_args_from_function
build_args_hook = build_unwrap_args_with_rules
build_hook_response_function = build_wrap_response_from_function
build_response_hook = build_wrap_response_with_rules


def register_tensor(  # type: ignore[no-redef]  # the argument order of 0.1
    tensor: Tensor, response_ids: list[int] | None = None, owner: BaseWorker | None = None
) -> torch.Tensor:
    """Store ``tensor`` on ``owner``, with the argument order of 0.1."""
    return _register_tensor(tensor, owner if owner is not None else tensor.owner, response_ids)


def wrap_plain(child: Tensor, **_attributes: object) -> Wrapper:
    """Wrap ``child``; the dtype is always that of the child."""
    return Wrapper(child)


def wrap_as_parameter(child: Tensor, **_attributes: object) -> torch.Tensor:
    """Wrap ``child`` as a Parameter."""
    return torch.nn.Parameter(Wrapper(child), requires_grad=child.requires_grad)


register_type_rule({torch.Tensor: one, torch.nn.Parameter: one, Wrapper: one, NumericWrapper: one, torch.Size: zero})
register_forward_func({torch.Tensor: reject_framework_tensor, Wrapper: get_child, NumericWrapper: get_child})
register_backward_func({torch.Tensor: wrap_plain, Wrapper: wrap_plain, torch.nn.Parameter: wrap_as_parameter})
register_backward_func({NumericWrapper: wrap_numeric})
