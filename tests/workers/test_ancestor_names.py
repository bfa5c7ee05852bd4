"""Every name of PySyft 0.1 and 0.2 on workers, pointers, stores and plans works, or the migration page has a row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import syft_core as sy
from syft_core.network.client import WebsocketClientWorker
from syft_core.plans.pointer import PointerPlan

torch = pytest.importorskip("torch")
PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")
NAMES = {
    "worker": """_known_workers get_worker send_msg recv_msg _send_msg _recv_msg _get_msg send send_command send_obj
        request_obj register_obj de_register_obj get_obj clear_objects load_data search request_search find_or_request
        fetch_plan request_remote_tensor_shape request_is_remote_tensor_none create_worker_command_message list_tensors
        tensors_count list_objects objects_count remove_worker_from_registry __getitem__ message_pending_time
        is_framework_supported serializer add_worker add_workers generate_triple execute_command respond_to_obj_req
        deserialized_search force_simplify registration_enabled _tensors _objects id is_client_worker log_msgs
        msg_history verbose hook object_store remote framework crypto_store""",
    "client": """url connect close search list_tensors_remote tensors_count_remote list_objects_remote
        objects_count_remote clear_objects_remote _get_msg_remote _log_msgs_remote fit async_fit evaluate id remote
        list_tensors list_objects register_obj get_obj de_register_obj load_data _objects find_or_request request_obj
        objects_count tensors_count clear_objects""",
    "store": """set_obj rm_obj force_rm_obj find_by_id find_by_tag register_tags current_objects __len__""",
    "tensor": """describe tag tags description copy clone refresh shape grad get mid_get has_child get_class_attributes
        handle_func_command send send_ get_ move remote_send remote_get fix_prec float_prec fix_precision
        float_precision share share_ encrypt decrypt combine private_tensor allow gc garbage_collection disable_gc attr
        data item dim numel size torch_type id owner child is_wrapper location id_at_location virtual_get ser serialize
        setattr""",
    "pointer": """get attr setattr wrap create_pointer find_a_pointer handle_func_command shape get_shape grad data
        is_none clone move remote_send remote_get item set_garbage_collect_data location id_at_location owner id
        garbage_collect_data point_to_attr tags description tag describe has_child serialize copy mid_get __iter__""",
    "multi": "get virtual_get shape child location",
    "plan": """is_built code actions state parameters send get build fix_precision share float_precision id owner tags
        description tag describe name forward torchscript add_translation create_dummy_args input_types role""",
    "plan pointer": "location get parameters id_at_location tag describe owner id",
    "top": """TorchHook VirtualWorker WebsocketClientWorker WebsocketServerWorker Plan func2plan Protocol func2protocol
        LoggingTensor AdditiveSharingTensor ReplicatedSharingTensor AutogradTensor FixedPrecisionTensor PointerTensor
        MultiPointerTensor PrivateTensor PlaceHolder PointerPlan NumpyTensor PrivateGridNetwork PublicGridNetwork
        create_sandbox make_hook combine_pointers FederatedDataset FederatedDataLoader BaseDataset keygen serde
        frameworks exceptions local_worker torch framework ID_PROVIDER LargePrecisionTensor CRTPrecisionTensor
        VirtualGrid TrainConfig""",
    "hook": """_hook_native_tensors_and_variables _add_registration_to___init__ _which_methods_should_we_auto_overload
        _rename_native_functions _assign_methods_to_use_child _add_methods_from__TorchObject _hook_syft_tensor_types
        _hook_LocalTensor _hook_SyftTensor _hook_PointerTensor _hook_GeneralizedPointerTensor _get_overloaded_method
        _hook_torch_module _hook_backward _hook_module to_auto_overload torch local_worker""",
}


@pytest.fixture
def holders(hook: Any, bob: Any, alice: Any) -> dict[str, Any]:
    pointer = torch.ones(2).send(bob)
    return {
        "worker": bob, "client": WebsocketClientWorker, "store": bob.object_store, "tensor": pointer,
        "pointer": pointer.child, "multi": torch.ones(2).send(bob, alice).child, "plan": sy.Plan("p", lambda x: x),
        "plan pointer": PointerPlan, "top": sy, "hook": hook,
    }  # fmt: skip


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_of_the_ancestor_works_or_has_a_row(holders: dict[str, Any], kind: str) -> None:
    missing = [name for name in NAMES[kind].split() if not hasattr(holders[kind], name)]
    assert [name for name in missing if not re.search(rf"`[^`]*\b{re.escape(name)}\b[^`]*`", PAGE)] == []


def test_workers_list_their_tensors(bob: Any) -> None:
    p = torch.ones(2).send(bob)
    plan = sy.Plan("double", lambda x: x * 2).build(torch.ones(2)).send(bob)
    assert list(bob._tensors) == [p.id_at_location]
    assert (bob.tensors_count, bob.objects_count) == (1, 2)
    assert plan.location is bob
