"""The names of PySyft 0.1 and 0.2 have their signatures: calls with its arguments, by position or by name, fit."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import syft_core
from syft_core.hook import hook_args
from syft_core.hook.overload import Overloaded

torch = pytest.importorskip("torch")

import syft_torch.hook_args  # noqa: E402  # after the check that torch is there
import syft_torch.serde  # noqa: E402  # the same
from syft_torch.attributes import TorchAttributes  # noqa: E402  # the same
from syft_torch.hook import TorchHook  # noqa: E402  # the same

HOOK_ARGS = """
build_get_tensor_type(rules, layer=)
build_register_response(response, rules, return_tuple=)
build_register_response_function(response)
build_rule(args)
build_unwrap_args_from_function(args, return_tuple=)
build_unwrap_args_with_rules(args, rules, return_tuple=)
build_wrap_reponse_from_function(response, wrap_type, wrap_args)
build_wrap_response_from_function(response, wrap_type, wrap_args)
build_wrap_response_with_rules(response, rules, wrap_type, wrap_args, return_tuple=, return_list=)
default_backward_func(tensorcls)
default_register_tensor(*tensorcls)
eight_fold(lambdas, args, **kwargs)
five_fold(lambdas, args, **kwargs)
four_fold(lambdas, args, **kwargs)
four_layers(idx1, *ids)
hook_response(attr, response, wrap_type, wrap_args=, new_self=)
many_fold(lambdas, args, **kwargs)
one(_args)
one_fold(return_tuple, **kwargs)
one_layer(idx1)
register_ambiguous_function(*function)
register_ambiguous_method(*method)
register_backward_func(new_backward_rules)
register_forward_func(new_forward_rules)
register_response(attr, response, response_ids, owner)
register_tensor(tensor, owner, response_ids=)
register_type_rule(new_type_rules)
seven_fold(lambdas, args, **kwargs)
six_fold(lambdas, args, **kwargs)
three_fold(lambdas, args, **kwargs)
three_layers(idx1, *ids)
two_fold(lambdas, args, **kwargs)
two_layers(idx1, idx2)
typed_identity(a)
unwrap_args_from_function(attr, args, kwargs, return_args_type=)
unwrap_args_from_method(attr, method_self, args, kwargs)
zero_fold(*a, **k)
"""
OLD_HOOK_ARGS = """
build_args_hook(args, rules, return_tuple=)
build_hook_args_function(args, return_tuple=)
build_hook_response_function(response, wrap_type, wrap_args)
build_response_hook(response, rules, wrap_type, wrap_args, return_tuple=)
hook_function_args(attr, args, kwargs, return_args_type=)
hook_method_args(attr, method_self, args, kwargs)
register_tensor(tensor, response_ids=, owner=)
"""
HOOK = """
_TorchHook__hook_properties(tensor_type)
_get_hooked_additive_shared_method(attr)
_get_hooked_base_worker_method(attr)
_get_hooked_func(public_module_name, func_api_name, attr)
_get_overloaded_method(attr)
_hook_module()
_hook_native_tensor(tensor_type, syft_type)
_hook_native_tensors_and_variables(tensor_type)
_hook_optim()
_hook_parameters()
_hook_private_tensor_methods(syft_type)
_hook_syft_tensor_methods(syft_type)
_hook_tensor()
_hook_torch_module()
_hook_worker_methods()
_rename_native_functions(tensor_type)
_transfer_methods_to_native_tensor(tensor_type, syft_type)
_which_methods_should_we_auto_overload(tensor_type)
create_shape(shape_dims)
create_wrapper(wrapper_type)
create_zeros(*shape, dtype=, **kwargs)
get_hooked_additive_shared_method(attr)
get_hooked_func(attr)
get_hooked_method(method_name)
get_hooked_multi_pointer_method(attr)
get_hooked_pointer_method(attr)
get_hooked_syft_method(attr)
"""
SERDE = """
_deserialize_tensor(worker, serializer, tensor_bin)
_detail_script_module(worker, script_module_bin)
_detail_torch_device(worker, device_type)
_detail_torch_mem_format(worker, mem_format)
_detail_torch_parameter(worker, param_tuple)
_detail_torch_size(worker, size)
_detail_torch_tensor(worker, tensor_tuple)
_serialize_tensor(worker, tensor)
_simplify_script_module(worker, obj)
_simplify_torch_device(worker, device)
_simplify_torch_mem_format(worker, mem_format)
_simplify_torch_parameter(worker, param)
_simplify_torch_size(worker, size)
_simplify_torch_tensor(worker, tensor)
simplified_tensor_deserializer(worker, tensor_tuple)
simplified_tensor_serializer(worker, tensor)
"""
ATTRIBUTES = """
apply_fix16922(torch)
eval_torch_modules()
get_native_torch_name(attr)
get_native_framework_name(attr)
is_inplace_method(method_name)
"""
OVERLOADED = """
overload_function(attr)
overload_method(attr)
overload_module(attr)
"""
TOP = """
combine_pointers(*pointers)
TorchHook(torch, local_worker=, is_client=, verbose=, queue_size=)
"""
PLACES: dict[str, Any] = {
    "hook_args": (hook_args, HOOK_ARGS),
    "old hook_args": (syft_torch.hook_args, OLD_HOOK_ARGS),
    "hook": (TorchHook, HOOK),
    "serde": (syft_torch.serde, SERDE),
    "attributes": (TorchAttributes, ATTRIBUTES),
    "overload": (Overloaded, OVERLOADED),
    "top": (
        syft_core,
        "combine_pointers(*pointers)\nTorchHook(torch, local_worker=, is_client=, verbose=, queue_size=)",
    ),
}
SYMBOLS = [
    (place, *line.rstrip(")").split("(")) for place, (_, table) in PLACES.items() for line in table.split("\n") if line
]


@pytest.mark.parametrize(("place", "name", "listed"), SYMBOLS, ids=[f"{place}.{name}" for place, name, _ in SYMBOLS])
def test_a_symbol_takes_the_arguments_it_always_took(place: str, name: str, listed: str) -> None:
    holder = PLACES[place][0]
    symbol = getattr(holder, name)
    names = [part for part in listed.split(", ") if part]
    required = [part for part in names if not part.startswith("*") and not part.endswith("=")]
    optional = [part[:-1] for part in names if part.endswith("=")]
    is_method = inspect.isclass(holder) and inspect.isfunction(inspect.getattr_static(holder, name))
    me = (object(),) if is_method else ()
    found = inspect.signature(symbol)

    found.bind(*me, *required)
    if not any(part.startswith("*") for part in names):
        found.bind(*me, **dict.fromkeys(required))
        found.bind(*me, *required, *optional)
    for part in optional:
        found.bind(*me, *required, **{part: None})
    if any(part.startswith("**") for part in names):
        found.bind(*me, *required, anything=None)
    if any(part.startswith("*") and not part.startswith("**") for part in names):
        found.bind(*me, *required, 1, 2)
