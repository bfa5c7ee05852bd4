"""Codecs for torch's dtypes, devices, layouts, memory formats, sizes and generators.

Each uses an explicit table; a received name is never looked up in torch itself. Constants that this version of torch
does not have are not in the tables.
"""

from __future__ import annotations

from typing import Any

import torch

from syft_core.serde import Codec, Context, SerdeError
from syft_core.serde.received import require
from syft_core.values import Payload

# The position in the list is the wire number: append only.
_DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 bfloat16 complex32 "
    "uint16 uint32 uint64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 "
    "bits8 bits16 bits1x8 bits2x4 bits4x2 int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7 "
    "qint8 quint8 qint32 quint4x2 quint2x4 bcomplex32"
)
_LAYOUTS = "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged"
_QSCHEMES = (
    "per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric per_channel_affine_float_qparams"
)
_DEVICES = "cpu cuda mps xpu xla meta hpu mtia vulkan ipu ve fpga maia lazy opengl opencl ideep hip privateuseone"
# Their numbers start at 1; the first three are those of the ancestor.
_MEMORY_FORMATS = "channels_last contiguous_format preserve_format channels_last_3d"


def _number(names: str, first: int = 0) -> dict[int, Any]:
    known = vars(torch)
    return {number: known[name] for number, name in enumerate(names.split(), first) if name in known}


DTYPES = _number(_DTYPES)
DTYPE_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
DTYPE_NAMES = {dtype: _DTYPES.split()[number] for number, dtype in DTYPES.items()}
QUANTIZED = frozenset(dtype for dtype, name in DTYPE_NAMES.items() if name.startswith(("qint", "quint")))
LAYOUTS = _number(_LAYOUTS)
LAYOUT_NUMBERS = {layout: number for number, layout in LAYOUTS.items()}
MEMORY_FORMATS = _number(_MEMORY_FORMATS, first=1)
QSCHEMES = _number(_QSCHEMES)
DEVICE_TYPES = frozenset(_DEVICES.split())
DTYPES_BY_NAME = {name: dtype for dtype, name in DTYPE_NAMES.items()}


def find(table: dict[Any, Any], key: object, what: str) -> Any:
    """Return the entry of ``key``, which was received."""
    found = table.get(key) if type(key) in (int, str) else None
    if found is None:
        raise SerdeError(f"cannot read a {what}: its wire number is unknown to this version; upgrade the older end")
    return found


def get_dtype_number(dtype: torch.dtype) -> int:
    """Return the wire number of ``dtype``."""
    number = DTYPE_NUMBERS.get(dtype)
    if number is None:
        raise SerdeError(f"cannot serialize a {dtype}: it has no wire number yet; convert it, e.g. `x.float()`")
    return number


def is_available(device: torch.device) -> bool:
    """Return whether this process can put a tensor on ``device``."""
    kind, index = device.type, device.index or 0
    if kind in ("cpu", "meta"):
        return True
    if kind == "mps":
        return bool(torch.backends.mps.is_available()) and index == 0
    module: Any = {"cuda": torch.cuda, "xpu": torch.xpu}.get(kind)
    return module is not None and bool(module.is_available()) and index < module.device_count()


def choose_device(device: torch.device, context: Context) -> torch.device:
    """Return ``device`` if it is available, else the fallback of the context."""
    if is_available(device):
        return device
    if context.device_fallback is None:
        raise SerdeError(
            f"cannot put a tensor on {device}: the receiver has no such device and no fallback; "
            f"set `Context(device_fallback='cpu')`, or send a cpu tensor"
        )
    return torch.device(context.device_fallback)


def _constant_codec(kind: type, code: int, table: dict[int, Any], what: str) -> Codec:
    numbers = {value: number for number, value in table.items()}

    def simplify(obj: object, _: Context) -> tuple[int]:
        if obj not in numbers:
            raise SerdeError(f"cannot serialize the {what} {obj}: it has no wire number yet")
        return (numbers[obj],)

    def detail(payload: Payload, _: Context) -> Any:
        (number,) = payload
        return find(table, number, what)

    return Codec(kind, code, simplify, detail)


def _detail_device(payload: Payload, _: Context) -> torch.device:
    """Rebuild a device, which need not be available here; only tensors use the fallback."""
    kind, index = payload
    is_index = index is None or (type(index) is int and 0 <= index < 128)
    require(type(kind) is str and kind in DEVICE_TYPES and is_index, "a device: its type or index is invalid")
    return torch.device(kind) if index is None else torch.device(kind, index)


def _detail_size(payload: Payload, _: Context) -> torch.Size:
    """Rebuild a size from its lengths, of which -1 is left to torch: ``x.view(x.shape[:-1] + (-1, 2))``."""
    are_lengths = all(type(length) is int and -1 <= length < 2**63 for length in payload)
    require(are_lengths, "a torch.Size: expected lengths of -1 or more")
    return torch.Size(payload)


def _detail_generator(payload: Payload, context: Context) -> torch.Generator:
    device, state = payload
    are_typed = type(device) is torch.device and type(state) is torch.Tensor
    require(are_typed, "a generator: its device or state has a wrong type")
    generator = torch.Generator(choose_device(device, context))
    generator.set_state(state)
    return generator


DTYPE = _constant_codec(torch.dtype, 154, DTYPES, "dtype")
DEVICE = Codec(torch.device, 155, lambda device, _: (device.type, device.index), _detail_device)
LAYOUT = _constant_codec(torch.layout, 156, LAYOUTS, "layout")
MEMORY_FORMAT = _constant_codec(torch.memory_format, 157, MEMORY_FORMATS, "memory format")
GENERATOR = Codec(
    torch.Generator, 158, lambda generator, _: (generator.device, generator.get_state()), _detail_generator
)
QSCHEME = _constant_codec(torch.qscheme, 163, QSCHEMES, "quantization scheme")
SIZE = Codec(torch.Size, 153, lambda size, _: tuple(size), _detail_size)

CODECS = (SIZE, DTYPE, DEVICE, LAYOUT, MEMORY_FORMAT, GENERATOR, QSCHEME)
