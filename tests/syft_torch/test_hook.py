from __future__ import annotations

import copy
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import NotTheFrameworkError  # noqa: E402
from syft_core.tensors.abstract import AbstractTensor  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_core.workers.party.base import BaseWorker  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402
from syft_torch.versions import BACKWARD_BYPASSES  # noqa: E402

STEPS_IN_LISTS = ("sgd", "adam", "adamw", "adagrad", "adadelta", "adamax", "rmsprop", "rprop")
STEPS = (*STEPS_IN_LISTS, "nadam", "radam", "asgd", "lbfgs", "sparse_adam", "optimizer")
STEPS_WITH_NUMBERS = ("adam", "adamw", "adagrad", "adamax", "asgd", "nadam", "radam")


def everything_in_torch() -> dict[str, dict[str, Any]]:
    places = [
        torch,
        torch.functional,
        torch.nn.functional,
        torch.nn.init,
        torch.linalg,
        torch.fft,
        torch.special,
        torch.autograd,
        torch.overrides,
        torch.jit,
        torch.Tensor,
        torch._C.TensorBase,
        torch.nn.Parameter,
        torch.nn.Module,
        torch.nn.Linear,
        torch.optim.Optimizer,
        torch.optim.SGD,
        torch.optim.swa_utils,
        *map(import_module, ("torch.nn.utils.clip_grad", *(f"torch.optim.{name}" for name in STEPS))),
    ]
    return {place.__name__: dict(vars(place)) for place in places}


def test_unhooking_leaves_every_attribute_of_torch_as_it_was() -> None:
    TorchHook(torch).unhook()
    before = everything_in_torch()
    builtins = dict(torch.jit._builtins._get_builtin_table())

    with TorchHook(torch):
        assert torch.torch_hooked

    after = everything_in_torch()
    for place, was in before.items():
        now = after[place]
        assert was.keys() == now.keys()
        assert [name for name in was if was[name] is not now[name]] == []
    assert torch.jit._builtins._get_builtin_table() == builtins
    assert not hasattr(torch, "torch_hooked")


def test_importing_the_backend_changes_nothing_in_torch() -> None:
    program = (
        "import torch\n"
        "places = [torch, torch.Tensor, torch.nn.Module, torch.nn.functional]\n"
        "before = [dict(vars(p)) for p in places]\n"
        "import syft_torch.hook, syft_torch.demo.story, syft_torch.plugin\n"
        "after = [dict(vars(p)) for p in places]\n"
        "assert all(a.keys() == b.keys() and all(a[k] is b[k] for k in a) for a, b in zip(before, after))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_hooking_adds_names_and_replaces_only_functions_with_substitutes(hook: Any) -> None:
    hook.unhook()
    before = everything_in_torch()
    with TorchHook(torch):
        now = everything_in_torch()
    replaced = {
        f"{place}.{name}" for place, was in before.items() for name in was if was[name] is not now[place].get(name)
    }
    assert replaced == {
        "torch.tensor",
        "torch.compile",
        "torch._nested_tensor_from_mask_left_aligned",
        "torch.functional.handle_torch_function",
        "torch.nn.functional.handle_torch_function",
        "Optimizer._group_tensors_by_device_and_dtype",
        "Optimizer.zero_grad",
        "SGD._init_group",
        "torch.nn.utils.clip_grad._group_tensors_by_device_and_dtype",
        "torch.optim.swa_utils._group_tensors_by_device_and_dtype",
        "torch.optim.adagrad._make_sparse",
        "Module.to",
        "torch.nn.init._no_grad_trunc_normal_",
        *(["torch.autograd.backward"] if BACKWARD_BYPASSES else []),
        *(f"torch.optim.{name}.{name}" for name in STEPS_IN_LISTS),
        *(
            f"torch.optim.{name}.{function}"
            for name in STEPS_WITH_NUMBERS
            for function in ("_get_value", "_dispatch_sqrt")
            if hasattr(import_module(f"torch.optim.{name}"), function)
        ),
    }


def test_plain_tensors_are_grouped_by_torch_itself(hook: Any) -> None:
    lists = [[torch.ones(2), torch.ones(2).double(), torch.zeros(2)], [None, None, torch.ones(2)], []]

    grouped = torch.optim.Optimizer._group_tensors_by_device_and_dtype(lists, with_indices=True)

    hook.unhook()
    expected = torch.optim.Optimizer._group_tensors_by_device_and_dtype(lists, with_indices=True)
    assert grouped.keys() == expected.keys()
    assert [indices for _, indices in grouped.values()] == [indices for _, indices in expected.values()]


def test_every_native_function_has_a_native_name(hook: Any) -> None:
    assert torch.native_cat is torch.cat
    assert torch.nn.functional.native_relu is torch.nn.functional.relu
    assert torch.Tensor.native_add is torch.Tensor.add
    assert torch.native_tensor is not torch.tensor
    assert torch.equal(torch.ones(2).native_add(1), torch.full((2,), 2.0))


def test_native_functions_of_torch_are_not_replaced(hook: Any) -> None:
    dropped = torch.native_dropout(torch.ones(3), 0.5, True)
    assert len(dropped) == 2


def test_torchs_functions_keep_their_names(hook: Any) -> None:
    assert torch.overrides.resolve_name(torch.cat) == "torch.cat"
    assert torch.overrides.resolve_name(torch.Tensor.add) == "torch.Tensor.add"


def test_torch_tensor_accepts_an_owner_and_an_id(hook: Any) -> None:
    bob = BaseWorker(hook, id="bob")
    x = torch.tensor([1, 2], owner=bob, id=77)
    assert (x.id, x.owner) == (77, bob)
    assert bob.get_obj(77) is x
    assert torch.tensor([1.0]).owner is hook.local_worker


def test_a_client_does_not_keep_its_tensors_alive(hook: Any) -> None:
    me = hook.local_worker
    x = torch.tensor([1], owner=me, id=5)
    assert x.id == 5
    assert repr(me) == "<VirtualWorker id:me #objects:0>"


def test_ids_are_stable_and_unique(hook: Any) -> None:
    x, y = torch.ones(2), torch.ones(2)
    assert x.id == x.id
    assert x.id != y.id


def test_plain_tensors_have_the_published_properties(hook: Any) -> None:
    x = torch.ones(2, 3)
    assert not x.is_wrapper
    assert x.location is None
    assert x.id_at_location is None
    assert x.native_shape == x.shape
    assert x.get_class_attributes() == {"type": torch.float32}
    assert x.tag("#a").describe("ones").tags == {"#a"}
    assert x.description == "ones"
    assert x.copy().id != x.id
    assert not x.has_child()


def test_on_keeps_the_id_of_the_tensor(hook: Any) -> None:
    x = torch.tensor([1.0], id=99)
    assert LoggingTensor().on(x).id == 99


def test_a_given_local_worker_refers_to_the_hook() -> None:
    worker = BaseWorker(id="here")
    with TorchHook(torch, local_worker=worker, is_client=False, verbose=False) as hook:
        assert hook.local_worker is worker
        assert worker.hook is hook


def test_the_queue_size_of_earlier_hooks_is_accepted_and_ignored() -> None:
    with TorchHook(torch, None, True, True, 3) as hook:
        assert not hasattr(hook, "queue_size")


def test_a_worker_that_is_not_a_client_keeps_wrappers_alive() -> None:
    with TorchHook(torch, is_client=False) as hook:
        x = LoggingTensor().on(torch.ones(2))
        assert hook.local_worker.get_obj(x.id) is x


def test_set_verbose_reaches_the_worker(hook: Any) -> None:
    hook.set_verbose(False)
    assert not hook.local_worker.verbose


def test_factories(hook: Any) -> None:
    assert hook.create_shape([1, 2]) == torch.Size([1, 2])
    assert hook.create_wrapper(torch.int64).dtype is torch.int64
    assert hook.create_wrapper(torch.Tensor).dtype is torch.get_default_dtype()
    assert torch.equal(hook.create_zeros(2, 3, dtype=torch.int32), torch.zeros(2, 3, dtype=torch.int32))


def test_the_hook_has_every_published_method(hook: Any) -> None:
    names = """create_shape create_wrapper create_zeros _hook_native_tensor _TorchHook__hook_properties
        _hook_syft_tensor_methods _hook_private_tensor_methods _hook_parameters _hook_worker_methods
        _get_hooked_base_worker_method _hook_torch_module _get_hooked_func
        _get_hooked_additive_shared_method _hook_tensor _transfer_methods_to_native_tensor _hook_module
        get_hooked_method get_hooked_syft_method get_hooked_pointer_method get_hooked_multi_pointer_method
        get_hooked_additive_shared_method get_hooked_func _hook_native_tensors_and_variables
        _which_methods_should_we_auto_overload _rename_native_functions _get_overloaded_method to_auto_overload"""
    assert [name for name in names.split() if not hasattr(hook, name)] == []


def test_hooked_methods_and_functions_take_plain_tensors_and_chains(hook: Any) -> None:
    add = hook.get_hooked_method("add")
    cat = hook._get_hooked_func("torch", "cat")
    x = torch.ones(2)
    chain = LoggingTensor().on(torch.ones(2))
    assert torch.equal(add(x, x), torch.full((2,), 2.0))
    assert type(add(chain, x).child) is LoggingTensor
    assert cat([x, x]).shape == (4,)
    assert type(cat([x, chain]).child) is LoggingTensor


def test_the_methods_that_are_dispatched_are_listed(hook: Any) -> None:
    names = hook.to_auto_overload[torch.Tensor]
    assert {"add", "add_", "sum", "__getitem__", "backward"} <= names
    assert not {"set_", "native_add", "__init__", "__class__"} & names


def test_results_of_a_private_type_record_their_lineage(hook: Any) -> None:
    class SecretTensor(AbstractTensor):
        pass

    hook._hook_private_tensor_methods(SecretTensor)
    x = SecretTensor().on(torch.ones(2))
    y = x + x
    assert y.child.parents == (x.child, x.child)
    assert y.child.command == "torch.Tensor.__add__"


def test_torchs_functions_accept_layers_without_a_wrapper(hook: Any) -> None:
    layer = LoggingTensor().on(torch.tensor([-1.0, 1.0]), wrap=False)
    result = torch.relu(layer)
    assert type(result) is LoggingTensor
    assert result.child.tolist() == [0.0, 1.0]


def test_modules_can_be_copied(hook: Any) -> None:
    model = torch.nn.Linear(2, 1)
    twin = model.copy()
    assert twin is not model
    assert torch.equal(twin.weight, model.weight)


def test_hooking_something_else_is_refused_with_advice() -> None:
    with pytest.raises(NotTheFrameworkError) as refused:
        TorchHook(copy)
    assert str(refused.value) == (
        "cannot hook 'copy': TorchHook takes the torch module itself; write `import torch` and `TorchHook(torch)`"
    )
