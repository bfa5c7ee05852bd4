from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_core.exceptions import OperationNotAllowedError  # noqa: E402

from ...hooks import hook_for_test  # noqa: E402
from ..settings import Setting  # noqa: E402

VALUES = np.array([[3.0, -1.5, 3.0, 0.25], [7.5, 2.0, -4.0, 0.0]])


@pytest.fixture
def hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from hook_for_test(request, "numpy")


@pytest.fixture(params=[0, 2], ids=["unshared", "shared"])
def setting(request: pytest.FixtureRequest, hook: Any) -> Setting:
    return Setting(hook, request.param)


@pytest.mark.parametrize("axis", [-1, 0, None])
@pytest.mark.parametrize("name", ["sort", "argsort", "median"])
def test_order_is_that_of_numpy(setting: Setting, name: str, axis: int | None) -> None:
    function = getattr(np, name)
    options = {"kind": "stable"} if name == "argsort" else {}

    found = setting.read(function(setting.put(VALUES), axis=axis))

    assert found.tolist() == function(VALUES, axis=axis, **options).tolist()


def test_the_median_of_an_odd_count_is_the_one_in_the_middle(setting: Setting) -> None:
    assert setting.read(np.median(setting.put(VALUES[:, :3]), axis=1)).tolist() == [3.0, 2.0]


@pytest.mark.parametrize("axis", [1, None])
def test_the_median_keeps_the_axes_if_asked(setting: Setting, axis: int | None) -> None:
    found = setting.read(np.median(setting.put(VALUES), axis=axis, keepdims=True))

    assert found.tolist() == np.median(VALUES, axis=axis, keepdims=True).tolist()


@pytest.mark.parametrize("name", ["rint", "around", "fabs", "average"])
def test_further_names_of_numpy_are_rules_too(setting: Setting, name: str) -> None:
    assert setting.read(getattr(np, name)(setting.put(VALUES))).tolist() == getattr(np, name)(VALUES).tolist()


def test_options_without_a_rule_are_refused_by_name(setting: Setting) -> None:
    with pytest.raises(OperationNotAllowedError, match="it has no rule for the option 'kind'; leave it out"):
        np.sort(setting.put(VALUES), kind="stable")
