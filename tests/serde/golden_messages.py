"""The objects of the golden messages, by framework.

Run ``python -m tests.serde.golden_messages`` after adding one: it writes what ``golden.json`` lacks and changes nothing
that is there, because messages that were sent once must stay readable.
"""

import importlib.util
import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

from syft_core.exceptions import ObjectNotFoundError
from syft_core.serde import Context, codecs, serialize
from syft_core.serde.codec import FIRST_USER_CODE

GOLDEN = Path(__file__).with_name("golden.json")
LONG = bytes(range(256)) * 8
COMPRESSED = Context(compression="zlib")


def builtin() -> dict[str, Any]:
    notes = OrderedDict(weight=1)
    notes._metadata = {"version": 2}  # type: ignore[attr-defined]
    return {
        "scalars": [None, True, False, 0, -1, 2**63, 1.5, "text", b"bytes", 2**64, -(2**70), 1 + 2j, ...],
        "containers": [[1], (2,), {"a": (3, 4), 5: []}, {6}, frozenset({7}), OrderedDict(b=1, a=2)],
        "notes": notes,
        "ranges": [range(1, 10, 3), slice(None, 2, (1,)), slice(1, None)],
        "long": [LONG, bytearray(LONG)],
        "many": list(range(5000)),
        "failure": ObjectNotFoundError(
            "cannot find object 5 on worker 'bob': it was never stored there or is gone; "
            "keep a pointer to what you still need"
        ),
        "types": [int, float, bool],
    }


def numpy() -> dict[str, Any]:
    import numpy as np  # noqa: PLC0415 - the framework may be absent

    fields = np.zeros(2, np.dtype([("a", "<i1"), ("b", ">f8", (2,)), ("c", [("d", "<U3")])], align=True))
    fields["a"], fields["b"] = 3, 1.5
    return {
        "numpy arrays": [
            np.arange(6, dtype="<i4").reshape(2, 3),
            np.arange(6.0).reshape(3, 2).T,
            np.zeros((0, 2), "<f4"),
        ],
        "numpy large": np.arange(1000, dtype="<f8"),
        "numpy fields": fields,
        "numpy others": [np.array(["a", "bc"]), np.array([b"x"]), np.array(["2020-01-01"], "<M8[D]"), np.array([True])],
        "numpy scalars": [np.float32(1.5), np.int8(-3), np.bool_(True), np.datetime64("2020", "Y"), np.str_("ab")],
        "numpy dtypes": [np.dtype("<f4"), np.dtype(">i2"), np.dtype(("<f4", (2,))), fields.dtype, np.float32],
    }


def torch() -> dict[str, Any]:
    import torch  # noqa: PLC0415 - the framework may be absent
    from torch import nn  # noqa: PLC0415 - the framework may be absent

    named = torch.tensor([1.0, 2.0], requires_grad=True)
    named.grad = torch.tensor([3.0, 4.0])
    named.__dict__.update(_syft_id=7, _syft_tags={"#x"}, _syft_description="two numbers")
    shared = torch.arange(3)
    linear = nn.Linear(2, 1)
    nn.init.ones_(linear.weight)
    nn.init.zeros_(linear.bias)
    return {
        "torch plain": [torch.arange(10.0), torch.arange(6).reshape(2, 3), torch.tensor(True), torch.zeros(0, 3)],
        "torch large": torch.arange(1000.0),
        "torch dtypes": [torch.arange(4.0).to(dtype) for dtype in (torch.bfloat16, torch.float16, torch.complex64)],
        "torch named": named,
        "torch strided": torch.arange(16.0).reshape(1, 2, 2, 4).to(memory_format=torch.channels_last),
        "torch sparse": torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)).coalesce(),
        "torch compressed": torch.sparse_compressed_tensor(
            [0, 1, 2], [1, 0], [1.0, 2.0], (2, 2), layout=torch.sparse_csr
        ),
        "torch meta": torch.empty(3, 4, device="meta"),
        "torch shared": [shared, {"again": shared}],
        "torch parameter": nn.Parameter(torch.ones(2), requires_grad=False),
        "torch constants": [
            torch.Size([1, 2]),
            torch.float16,
            torch.device("cuda", 1),
            torch.strided,
            torch.channels_last,
            torch.per_tensor_affine,
        ],
        "torch module": nn.Sequential(linear, nn.ReLU()),
    }


def numpy_chains() -> dict[str, Any]:
    import numpy as np  # noqa: PLC0415 - the framework may be absent

    import syft_numpy.hook  # noqa: F401, PLC0415 - registers the types
    from syft_core.tensors.logging import LoggingTensor  # noqa: PLC0415
    from syft_core.tensors.plus_is_minus import PlusIsMinusTensor  # noqa: PLC0415
    from syft_core.tensors.polynomial import PolynomialTensor  # noqa: PLC0415
    from syft_numpy.wrapper import Wrapper  # noqa: PLC0415

    cubes = PolynomialTensor(precision=4, child=np.ones(2))
    cubes.add_function("cube", 3, [[0, 1]], lambda x: x**3)
    layers = LoggingTensor(id=7, tags={"#x"}, description="two", child=PlusIsMinusTensor(child=np.ones(2)))
    return {"numpy chains": [cubes, layers, Wrapper(LoggingTensor(child=np.arange(3)))]}


def torch_chains() -> dict[str, Any]:
    import torch  # noqa: PLC0415 - the framework may be absent

    import syft_torch.hook  # noqa: F401, PLC0415 - registers the types
    from syft_core.tensors.logging import LoggingTensor  # noqa: PLC0415
    from syft_torch.wrapper import Wrapper  # noqa: PLC0415

    wrapper = Wrapper(LoggingTensor(child=torch.arange(3)))
    wrapper.id, wrapper.tags = 9, {"#y"}
    return {"torch chains": [wrapper, Wrapper(torch.ones(2))]}


SOURCES = {
    "builtin": builtin,
    "numpy": numpy,
    "torch": torch,
    "numpy chains": numpy_chains,
    "torch chains": torch_chains,
}


def make_installed() -> dict[str, Any]:
    """Return the golden objects of all installed frameworks."""
    objects = builtin()
    for name in ("numpy", "torch"):
        if importlib.util.find_spec(name):
            objects.update(SOURCES[name]())
            objects.update(SOURCES[f"{name} chains"]())
    return objects


def current_codes() -> dict[str, str]:
    # Only the last part of the name, because the module of a class differs between releases.
    own = sorted(code for code in codecs.by_code if code < FIRST_USER_CODE)
    return {str(code): codecs.by_code[code].type.__qualname__.rpartition(".")[2] for code in own}


def main() -> None:
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {"codes": {}, "messages": {}, "compressed": {}}
    import syft_core.workers.party.virtual  # noqa: F401, PLC0415 - registers the codecs of messages

    objects = make_installed()
    for code, name in current_codes().items():
        golden["codes"].setdefault(code, name)
    for name, obj in objects.items():
        golden["messages"].setdefault(name, serialize(obj).hex())
    golden["compressed"].setdefault("long", serialize(builtin()["long"], COMPRESSED).hex())
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    from .conftest import pytest_configure

    pytest_configure()
    main()
