from __future__ import annotations

from syft_mpc.encoding import Encoding
from syft_mpc.sharing import METHODS, Sharing


def test_the_methods_are_those_of_the_class_that_implements_them() -> None:
    assert set(METHODS) == {name for name in vars(Encoding) if not name.startswith("__")}


def test_a_method_is_that_of_the_class_that_implements_it() -> None:
    for name in METHODS:
        assert getattr(Sharing, name) is getattr(Encoding, name)
