from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from syft_core.exceptions import OperationNotAllowedError  # noqa: E402
from syft_torch.aten import ATEN  # noqa: E402

pytestmark = pytest.mark.usefixtures("hook")


def test_the_table_takes_its_facts_from_torchs_schemas() -> None:
    op = ATEN.look_up("aten.mul_.Tensor")
    assert ATEN.of(torch.ops.aten.mul_.Tensor) is op
    assert (op.name, op.operation, op.attr, op.inplace, op.reveals) == ("aten.mul_.Tensor", "mul", "mul_", True, False)
    assert (ATEN.look_up("aten.mul.Tensor").operation, ATEN.look_up("aten.rsub.Scalar").operation) == ("mul", "sub")
    assert not ATEN.look_up("aten.add.out").inplace
    assert ATEN.look_up("aten.add.out").operation == ATEN.look_up("aten.add.out").attr == "aten.add.out"
    assert ATEN.look_up("aten._foreach_add_.List").each == "add"
    assert ATEN.look_up("aten._local_scalar_dense.default").reveals
    for name in ("aten.mul.Nothing", "aten.nothing.default", "prims.mul.default", "aten.mul", "aten.__name__.upper"):
        with pytest.raises(OperationNotAllowedError, match="not in the aten op table"):
            ATEN.look_up(name)
