from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

from .groups import Group  # noqa: E402


def test_signs_and_what_follows_from_them_are_right(group: Group, values: Any) -> None:
    x, y = values
    shares = group.share(x)

    assert (group.open(group.run("is_negative", shares)) == (x < 0)).all()
    positive, derivative = group.run("relu", shares, derivative=True)
    assert (group.open(positive) == np.maximum(x, 0)).all()
    assert (group.open(derivative) == (x > 0)).all()
    assert (
        group.open(group.run("maximum", group.share(x // 2), group.share(y // 2))) == np.maximum(x // 2, y // 2)
    ).all()
    assert (group.open(group.run("is_zero", group.share(x - y))) == (x == y)).all()
    for name, expected in (("is_negative", x >= 0), ("is_zero", x != 0)):
        bit, scaled = group.run(name, shares, negated=True, scale=1 << 16)
        assert (group.open(bit) == expected).all()
        assert (group.open(scaled) == expected * (1 << 16)).all()
