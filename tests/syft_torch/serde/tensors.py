"""Tensors of all dtypes, and their way over the wire."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from syft_core.serde import (  # noqa: E402
    deserialize,
    frames,
    from_frames,
    serialize,
)

from ...serde.equality import same  # noqa: E402

ALL_DTYPES = sorted({x for x in vars(torch).values() if isinstance(x, torch.dtype)}, key=str)


QUANTIZED = {torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4}


RAW_DTYPES = [dtype for dtype in ALL_DTYPES if dtype not in QUANTIZED]


SERIALIZERS = ["torch", "numpy", "all"]


def there_and_back(value, **options):
    received = deserialize(serialize(value), **options)
    apart = from_frames(frames(value), **options)
    assert same(received, apart)
    return received


def dense(dtype, data, *shape):
    return [150, 0, dtype, data, *shape]


def worker(serializer=None, **rest):
    return SimpleNamespace(id="bob", serializer=serializer, **rest)


def some(dtype, *shape):
    """Return a tensor with many different bytes; bools are valid, floats are finite."""
    count = torch.Size(shape).numel()
    data = torch.arange(count * dtype.itemsize, dtype=torch.uint8) * 37
    if dtype is torch.bool:
        data = data % 2
    return data.view(dtype).reshape(shape)
