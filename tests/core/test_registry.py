from __future__ import annotations

import pytest

from syft_core.exceptions import AlreadyRegisteredError, NotRegisteredError
from syft_core.registry import Registry


@pytest.fixture
def colours() -> Registry[str, object]:
    table: Registry[str, object] = Registry("colours", advice="mix it yourself")
    table.register("red", 1)
    table.register("green", 2)
    return table


def test_an_entry_is_found_under_its_key(colours: Registry[str, object]) -> None:
    assert colours["red"] == 1
    assert colours.get("green") == 2


def test_get_returns_none_or_the_default_for_a_missing_key(colours: Registry[str, object]) -> None:
    assert colours.get("blue") is None
    assert colours.get("blue", 9) == 9


def test_it_is_a_mapping_in_the_order_of_registration(colours: Registry[str, object]) -> None:
    assert list(colours) == ["red", "green"]
    assert len(colours) == 2
    assert "red" in colours
    assert "blue" not in colours
    assert dict(colours) == {"red": 1, "green": 2}


def test_items_cannot_be_assigned(colours: Registry[str, object]) -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        colours["blue"] = 3  # type: ignore[index]


def test_a_second_value_for_a_key_is_refused(colours: Registry[str, object]) -> None:
    with pytest.raises(AlreadyRegisteredError) as caught:
        colours.register("red", 3)

    assert str(caught.value) == (
        "cannot register 'red' in 'colours': it is registered already; register it once, or use another type"
    )
    assert colours["red"] == 1


def test_the_same_object_may_be_registered_again() -> None:
    value = object()
    table: Registry[str, object] = Registry("things")
    table.register("a", value)

    table.register("a", value)

    assert table["a"] is value


def test_an_equal_but_different_value_is_refused() -> None:
    table: Registry[str, object] = Registry("things")
    table.register("a", [1])

    with pytest.raises(AlreadyRegisteredError):
        table.register("a", [1])


def test_update_registers_all(colours: Registry[str, object]) -> None:
    colours.update({"blue": 3, "black": 4})

    assert (colours["blue"], colours["black"]) == (3, 4)


def test_update_registers_nothing_if_one_key_is_taken(colours: Registry[str, object]) -> None:
    with pytest.raises(AlreadyRegisteredError, match="cannot register 'red' in 'colours'"):
        colours.update({"blue": 3, "red": 4})

    assert "blue" not in colours
    assert colours["red"] == 1


def test_the_error_for_a_missing_key_suggests_similar_keys(colours: Registry[str, object]) -> None:
    with pytest.raises(NotRegisteredError) as caught:
        colours["rad"]

    assert str(caught.value) == (
        "cannot find 'rad' in 'colours': it is not registered; did you mean 'red'? otherwise mix it yourself"
    )


def test_the_error_without_similar_keys_only_has_advice(colours: Registry[str, object]) -> None:
    with pytest.raises(LookupError) as caught:
        colours["xyzzy"]

    assert str(caught.value) == "cannot find 'xyzzy' in 'colours': it is not registered; mix it yourself"


def test_types_are_shown_with_their_module() -> None:
    table: Registry[type, int] = Registry("types")

    with pytest.raises(NotRegisteredError, match=r"cannot find builtins\.int in 'types'"):
        table[int]


def test_keys_are_shown_with_the_given_function() -> None:
    table: Registry[int, str] = Registry("codes", show=hex)

    with pytest.raises(NotRegisteredError, match="cannot find 0xff in 'codes'"):
        table[255]


def test_repr_shows_name_and_size(colours: Registry[str, object]) -> None:
    assert repr(colours) == "<Registry colours: 2 entries>"
