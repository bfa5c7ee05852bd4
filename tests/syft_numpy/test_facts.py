"""The facts about single operations of numpy; `tests/facts` holds all of them to what they say."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_numpy.facts import may_be_number  # noqa: E402

X, Y = np.ones(3), np.zeros(3)
MASK = np.array([True, False, True])


@pytest.fixture
def op(hook: Any) -> Any:
    return hook.attributes.ops.look_up


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "targets"),
    [
        ("numpy.add", (X, Y), {}, []),
        ("numpy.add", (X, 1, Y), {}, [Y]),
        ("numpy.add", (X, 1), {"out": (Y,)}, [Y]),
        ("numpy.add.reduce", (X, 0, None, Y), {}, [Y]),
        ("numpy.ndarray.__iadd__", (X, Y), {}, [X]),
        ("numpy.copyto", (X, Y), {}, [X]),
        ("numpy.nan_to_num", (X,), {}, []),
        ("numpy.nan_to_num", (X,), {"copy": False}, [X]),
        ("numpy.median", (X,), {"overwrite_input": True}, [X]),
        ("numpy.sum", (X,), {}, []),
    ],
)
def test_what_a_call_changes_is_known(op: Any, name: str, args: Any, kwargs: Any, targets: list[Any]) -> None:
    found = op(name).targets(args, kwargs)

    assert [id(target) for target in found] == [id(target) for target in targets]


@pytest.mark.parametrize(
    ("name", "args", "discloses"),
    [
        ("numpy.add", (X, Y), "nothing"),
        ("numpy.nonzero", (X,), "form"),
        ("numpy.ndarray.__getitem__", (X, 0), "nothing"),
        ("numpy.ndarray.__getitem__", (X, MASK), "form"),
        ("numpy.ndarray.__getitem__", (X, slice(np.array(1), None)), "form"),
        ("numpy.where", (MASK, X, Y), "nothing"),
        ("numpy.where", (MASK,), "form"),
    ],
)
def test_what_a_result_discloses_depends_on_the_call(op: Any, name: str, args: Any, discloses: str) -> None:
    assert op(name).disclosure(args, {}) == discloses


@pytest.mark.parametrize(
    ("name", "tier"), [("numpy.add", "reviewed"), ("numpy.nonzero", "public"), ("numpy.ndarray.tolist", "off")]
)
def test_an_operation_has_a_tier(op: Any, name: str, tier: str) -> None:
    assert op(name).tier == tier


def test_an_array_of_integers_or_of_one_element_may_be_a_number() -> None:
    assert all(map(may_be_number, (np.array([1, 2]), np.array(1.5), MASK, np.array([0.5]))))
    assert not any(map(may_be_number, (X, 3, "text", None)))


def test_no_operation_reads_beyond_its_arguments(hook: Any) -> None:
    assert not [op.name for op in hook.attributes.ops if op.reads_beyond]
