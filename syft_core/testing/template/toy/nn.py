"""The part of toy that a network needs."""

from __future__ import annotations

from toy import Vector, _overridable


@_overridable
def relu(x: Vector) -> Vector:
    return x.map(lambda v: v if v > 0 else type(v)(0))
