from __future__ import annotations

import math
import sys
import threading
from typing import Any

import pytest

from syft_core.exceptions import AlreadyRegisteredError, NotRegisteredError, RegistryError
from syft_core.features import FEATURES, Feature, Features, Later, import_everything, later
from syft_core.registry import Registry


class Loader:
    """Loads features, and remembers which."""

    def __init__(self) -> None:
        self.loaded: list[str] = []

    def __call__(self, feature: Feature) -> None:
        self.loaded.append(feature.name)


@pytest.fixture
def load() -> Loader:
    return Loader()


def make(*features: Feature, load: Any, plugins: Any = lambda: None) -> Features:
    table = Features(plugins)
    table.declare(*features, load=load)
    return table


KEYS: dict[str, tuple[Any, Any]] = {
    "name": ({"names": {"Thing": "math:pi"}}, "Thing"),
    "code": ({"codes": (1007,)}, 1007),
    "error": ({"errors": ("things.TornError",)}, "things.TornError"),
    "package": ({"packages": ("things",)}, "things"),
    "encoded": ({"encodes": ("things",)}, "things"),
    "kind": ({"kinds": ("thing",)}, "thing"),
    "restriction": ({"restrictions": ("things may not leave",)}, "things may not leave"),
    "rule": ({"rules": ("things may leave",)}, "things may leave"),
    "protocol": ({"protocols": ("count_things",)}, "count_things"),
}


@pytest.mark.parametrize("table", KEYS)
def test_a_feature_is_loaded_once_by_any_of_its_keys_in_their_table_only(table: Any, load: Loader) -> None:
    offered, key = KEYS[table]
    features = make(Feature("things", "things.feature", **offered), load=load)

    for other in KEYS:
        if other != table:
            assert not features.load(other, key)  # type: ignore[arg-type]  # a table
    assert load.loaded == []
    assert features.load(table, key)
    assert features.load(table, key)

    assert load.loaded == ["things"]
    assert features.is_loaded("things")


@pytest.mark.parametrize("key", ["math", "os:system", "things.feature", "", None, 1.5, [], b"Thing"])
def test_what_nobody_offers_loads_nothing(key: object, load: Loader) -> None:
    features = make(Feature("things", "things.feature", **KEYS["name"][0]), load=load)
    before = set(sys.modules)

    for table in KEYS:
        assert not features.load(table, key)  # type: ignore[arg-type]  # a table

    assert load.loaded == []
    assert set(sys.modules) == before


def test_a_class_loads_the_feature_with_its_package_or_that_of_a_base(load: Loader) -> None:
    base = type("Base", (), {"__module__": "things.deep.down"})
    features = make(Feature("things", "things.feature", packages=("things",)), load=load)

    assert not features.load_type(type("Other", (), {"__module__": "thingsome"}))
    assert features.load_type(type("Derived", (base,), {"__module__": "elsewhere"}))

    assert load.loaded == ["things"]


def test_a_class_that_no_feature_had_is_asked_for_again_when_one_was_added(load: Loader) -> None:
    features = make(load=load)
    cls = type("Late", (), {"__module__": "things"})
    assert not features.load_type(cls)

    features.declare(Feature("things", "things.feature", packages=("things",)), load=load)

    assert features.load_type(cls)


def test_two_features_with_one_key_are_refused_and_neither_is_added(load: Loader) -> None:
    features = make(Feature("one", "one", codes=(1001,)), load=load)

    with pytest.raises(AlreadyRegisteredError, match="cannot register the code 1001 in 'features'"):
        features.declare(Feature("two", "two", codes=(1002,)), Feature("three", "three", codes=(1001,)), load=load)

    assert ("code", 1002) not in features
    assert [feature.name for feature in features] == ["one"]


def test_rules_are_loaded_in_the_order_of_their_declaration_whichever_is_needed_first(load: Loader) -> None:
    first, second = (Feature(name, name, codes=(code,), rules=(name,)) for name, code in (("a", 1001), ("b", 1002)))
    features = make(first, Feature("c", "c", codes=(1003,)), second, load=load)

    features.load("code", 1002)

    assert load.loaded == ["a", "b"]


def test_a_feature_is_not_offered_without_the_module_that_it_requires(load: Loader) -> None:
    features = make(Feature("things", "things.feature", codes=(1001,), requires="no_such_hook"), load=load)

    features.load("code", 1001)

    assert load.loaded == []
    assert not features.is_loaded("things")


def test_a_feature_that_misses_its_own_keys_while_it_is_loaded_is_not_loaded_again() -> None:
    loaded = []

    def load(feature: Feature) -> None:
        loaded.append(feature.name)
        features.load("code", 1001)

    features = make(Feature("things", "things.feature", codes=(1001,)), load=load)
    features.load("code", 1001)

    assert loaded == ["things"]


def test_a_feature_whose_loading_is_interrupted_is_loaded_when_it_is_needed_again() -> None:
    attempts = []

    def load(feature: Feature) -> None:
        attempts.append(feature.name)
        if len(attempts) == 1:
            raise KeyboardInterrupt

    features = make(Feature("things", "things.feature", codes=(1001,)), load=load)
    with pytest.raises(KeyboardInterrupt):
        features.load("code", 1001)
    features.load("code", 1001)

    assert attempts == ["things", "things"]


def test_a_thread_never_goes_on_before_what_it_needs_is_loaded() -> None:
    begun, may_end, seen = threading.Event(), threading.Event(), []
    registered: list[str] = []
    lock = threading.Lock()

    def load(feature: Feature) -> None:
        with lock:
            begun.set()
            assert may_end.wait(20)
            if not registered:
                registered.append(feature.name)

    def use() -> None:
        features.load("code", 1001)
        seen.append(list(registered))

    features = make(Feature("things", "things.feature", codes=(1001,)), load=load)
    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(20)
    may_end.set()
    for thread in threads:
        thread.join(20)

    assert seen == [["things"]] * 4


def test_the_plugins_are_found_when_a_key_is_missing_for_the_first_time(load: Loader) -> None:
    def find() -> None:
        found.append(True)
        features.declare(Feature("things", "things.feature", codes=(1001,)), load=load)
        features.load("code", 1005)  # Plugins may miss keys too.

    found: list[bool] = []
    features = Features(find)

    assert features.load("code", 1001)
    assert not features.load("code", 1002)
    assert found == [True]
    assert load.loaded == ["things"]


def test_names_are_resolved_and_unknown_ones_are_refused(load: Loader) -> None:
    features = make(Feature("things", "things.feature", names={"pi": "math:pi"}), load=load)

    assert features.resolve("pi") == pytest.approx(3.14159, abs=1e-4)
    assert load.loaded == ["things"]
    with pytest.raises(NotRegisteredError, match="cannot find 'tau' in 'features'"):
        features.resolve("tau")


def test_a_registry_loads_what_registers_a_missing_key() -> None:
    def load(key: str) -> bool:
        asked.append(key)
        if key == "late":
            table.register("late", 2)
        return key == "late"

    asked: list[str] = []
    table: Registry[str, int] = Registry("numbers", load=load)

    assert table.get("late") == 2
    assert table["late"] == 2
    assert table.get("never", 7) == 7
    with pytest.raises(NotRegisteredError):
        table["never"]
    assert asked == ["late", "never", "never"]


class Square:
    """Has attributes that are imported later."""

    join = Later("textwrap:dedent")
    side: float = later("math:pi")


def test_an_attribute_is_imported_when_it_is_used() -> None:
    assert Square.side == Square().side == pytest.approx(3.14159, abs=1e-4)
    assert Square().join.__self__.__class__ is Square  # A function is a method.
    assert Square.join("  x") == "x"
    assert Later("textwrap:dedent")("  x") == "x"


def test_a_served_worker_imports_everything_before_it_limits_itself() -> None:
    later = Later("math:tau")
    missing = Later("no_such_module_anywhere:x")

    import_everything()

    assert vars(later)["found"] == math.tau
    assert "found" not in vars(missing)
    assert all(FEATURES.is_loaded(feature.name) or feature.requires for feature in FEATURES)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("packages", "things", "'packages' is not a tuple"),
        ("names", ["Thing"], "'names' is not a dict of import paths"),
        ("codes", 1007, "'codes' is not a tuple"),
    ],
)
def test_a_field_of_a_wrong_type_is_named(field: str, value: Any, error: str) -> None:
    with pytest.raises(RegistryError, match=f"cannot describe the feature 'things': {error}"):
        Feature("things", "things.feature", **{field: value})
