from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from syft_core.exceptions import SerdeError  # noqa: E402
from syft_torch.attributes import TorchAttributes  # noqa: E402
from syft_torch.native import TorchTensor  # noqa: E402


class TestAttributes:
    def test_the_table_has_torch_functions_methods_and_properties(self) -> None:
        ops = TorchAttributes(torch).ops
        for name in (
            "torch.cat",
            "torch.nn.functional.relu",
            "torch.linalg.svd",
            "torch.Tensor.add_",
            "torch.Tensor.shape.__get__",
            "torch.Tensor.grad.__set__",
            "torch._foreach_add_",
            "torch.autograd.grad",
        ):
            assert ops.look_up(name).name == name

    @pytest.mark.parametrize(
        "name",
        "save load manual_seed seed set_default_dtype set_num_threads compile hub.load jit.load from_file".split(),
    )
    def test_functions_that_use_files_code_or_global_state_are_not_listed(self, name: str) -> None:
        ops = TorchAttributes(torch).ops
        assert f"torch.{name}" not in ops
        assert f"torch.Tensor.{name}" not in ops

    def test_the_guards_behave_as_published(self) -> None:
        attributes = TorchAttributes(torch)
        assert attributes._command_guard("torch.add") == "torch.add"
        assert attributes._command_guard("torch.add", get_native=True) == "torch.native_add"
        assert attributes._is_command_valid_guard("torch.add")
        with pytest.raises(RuntimeError, match="cannot run 'torch.launch' on a pointer or another layer"):
            attributes._command_guard("torch.launch")

    def test_the_published_names_exist(self) -> None:
        attributes = TorchAttributes(torch)
        assert attributes.get_native_torch_name("torch.nn.functional.relu") == "torch.nn.functional.native_relu"
        assert attributes.eval_torch_modules()["torch.cat"] is torch.cat
        assert attributes.native_commands["torch.add"] == "torch.native_add"
        attributes.apply_fix16922(torch)
        assert set(attributes.torch_modules) == {"torch", "torch.functional", "torch.nn.functional"}
        assert "torch.add" in attributes.allowed_commands

    @pytest.mark.parametrize(
        ("name", "inplace"),
        [("add_", True), ("add", False), ("__iadd__", True), ("__init__", False), ("__invert__", False)],
    )
    def test_in_place_methods(self, name: str, inplace: bool) -> None:
        assert TorchAttributes(torch).is_inplace_method(name) is inplace

    def test_operations_that_reveal_values_are_marked(self) -> None:
        ops = TorchAttributes(torch).ops
        for name in "item tolist numpy __array__ __float__ __int__ __index__ __complex__ __bool__ __contains__".split():
            assert ops.look_up(f"torch.Tensor.{name}").reveals
        assert ops.look_up("torch.equal").reveals
        assert ops.look_up("torch.allclose").reveals
        assert not ops.look_up("torch.add").reveals

    def test_the_names_added_to_tensors_replace_nothing(self) -> None:
        own = {name for name in vars(TorchTensor) if not name.startswith("__")}
        assert [name for name in own if hasattr(torch.Tensor, name)] == []


BAD_MODES = [
    "", "garbage", "True False torch.float32", "True False torch.float32 None x", "None None None None",
    "torch.float32 False torch.float32 None", "True False True None", "True False torch.float32 True",
]  # fmt: skip


@pytest.mark.parametrize("modes", BAD_MODES)
def test_modes_that_torch_does_not_have_are_refused(modes: str) -> None:
    with pytest.raises(SerdeError, match="they are not torch's"):
        TorchAttributes(torch).apply_modes(modes, (), {})


def test_modes_are_applied_in_a_block_and_restored() -> None:
    attributes = TorchAttributes(torch)
    before = attributes.modes()

    for modes in (
        "False False torch.float32 None",
        "True True torch.float32 None",
        "True False torch.float32 torch.bfloat16",
    ):
        with attributes.apply_modes(modes, (), {}):
            inside = attributes.modes()
        assert inside.split()[1:] == modes.split()[1:]
        assert attributes.modes() == before
