from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
from syft_core.exceptions import OperationNotAllowedError  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402


def chain(values: Any) -> Any:
    return LoggingTensor().on(np.array(values))


def data(wrapper: Any) -> Any:
    return wrapper.child.child


@pytest.mark.parametrize("function", ["save", "savez", "savetxt"])
def test_functions_that_write_files_are_refused(hook: Any, function: str, tmp_path: Any) -> None:
    with pytest.raises(OperationNotAllowedError, match=f"cannot run 'numpy.{function}' on a pointer or another layer"):
        getattr(np, function)(tmp_path / "x", chain([1.0]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["tofile", "dump", "dumps", "ctypes", "data", "base"])
def test_methods_that_write_files_or_show_memory_do_not_exist(hook: Any, method: str) -> None:
    with pytest.raises(AttributeError, match=f"cannot read '{method}'"):
        getattr(chain([1.0]), method)


def test_what_is_private_to_arrays_is_no_operation(hook: Any) -> None:
    # numpy 2.5 has `_set_shape` and `_set_dtype`, which would change the data under its wrapper.
    private = [op.name for op in hook.attributes.ops if op.attr.startswith("_") and not op.attr.startswith("__")]
    assert private == []


@pytest.mark.parametrize(
    "name", ["numpy.char.equal", "numpy.lib.scimath.sqrt", "numpy.lib.stride_tricks.sliding_window_view"]
)
def test_a_function_has_the_same_wire_name_in_every_numpy(hook: Any, name: str) -> None:
    assert name in hook.attributes.ops
