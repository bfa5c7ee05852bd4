from __future__ import annotations

import pytest

from syft_core import kinds
from syft_core.exceptions import AlreadyRegisteredError
from syft_core.kinds import ObjectKind, register_kind


class Thing:
    """An object that is not a tensor."""


def ignore(*_args: object) -> None: ...


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> dict[type, ObjectKind]:
    """An empty table of kinds."""
    made: dict[type, ObjectKind] = {}
    monkeypatch.setattr(kinds, "KINDS", made)
    return made


def test_a_kind_is_registered_once(table: dict[type, ObjectKind]) -> None:
    kind = ObjectKind("thing", ignore, ignore, lambda _thing: 1)

    register_kind(Thing, kind)
    register_kind(Thing, kind)

    assert table == {Thing: kind}


def test_another_kind_of_the_same_class_is_refused(table: dict[type, ObjectKind]) -> None:
    kind = ObjectKind("thing", ignore, ignore, lambda _thing: 1)
    register_kind(Thing, kind)

    with pytest.raises(AlreadyRegisteredError, match="cannot register Thing in 'kinds of objects'"):
        register_kind(Thing, ObjectKind("other", ignore, ignore, lambda _thing: 1))

    assert table[Thing] is kind
