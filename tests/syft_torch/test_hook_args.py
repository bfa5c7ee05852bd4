from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import PureFrameworkTensorFoundError  # noqa: E402
from syft_core.hook import hook_args as core  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_torch import hook_args  # noqa: E402
from syft_torch.wrapper import Wrapper  # noqa: E402


def test_the_names_of_the_ancestor_are_the_functions_of_the_core() -> None:
    assert hook_args.hook_method_args is core.unwrap_args_from_method
    assert hook_args.hook_function_args is core.unwrap_args_from_function
    assert hook_args.build_hook_args_function is core.build_unwrap_args_from_function
    assert hook_args.build_hook_response_function is core.build_wrap_response_from_function
    assert set(core.__all__) <= set(vars(hook_args))


def test_tensors_and_parameters_are_tensors_and_sizes_are_not() -> None:
    assert core.build_rule((torch.ones(1), torch.nn.Parameter(torch.ones(1)), torch.Size([1]), 2)) == (1, 1, 0, 0)


def test_a_wrapper_is_unwrapped_and_a_plain_tensor_has_no_child(hook: Any) -> None:
    x = LoggingTensor().on(torch.ones(2))

    new_self, (other,), _ = hook_args.hook_method_args("add", x, (x,), {})

    assert new_self is x.child
    assert other is x.child
    assert core.forward_func[Wrapper](x) is x.child
    with pytest.raises(PureFrameworkTensorFoundError):
        core.forward_func[torch.Tensor](torch.ones(1))


def test_a_result_is_wrapped_as_what_its_layer_was_on(hook: Any) -> None:
    layer = LoggingTensor().on(torch.ones(2, requires_grad=True), wrap=False)

    assert type(hook_args.wrap_plain(layer)) is Wrapper
    parameter = hook_args.wrap_as_parameter(layer)
    assert isinstance(parameter, torch.nn.Parameter)
    assert parameter.requires_grad
    assert type(parameter.child) is LoggingTensor


def test_a_tensor_is_registered_with_the_arguments_of_the_ancestor(hook: Any, bob: Any) -> None:
    x = torch.ones(2)

    hook_args.register_tensor(x, [7], bob)

    assert bob.get_obj(7) is x
