"""The facts about single operations of torch; `tests/facts` holds all of them to what they say."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

X, Y = torch.ones(3), torch.zeros(3)
MASK = torch.tensor([True, False, True])


@pytest.fixture
def op(hook: Any) -> Any:
    return hook.attributes.ops.look_up


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "targets"),
    [
        ("torch.add", (X, Y), {}, []),
        ("torch.add", (X, 1), {"out": Y}, [Y]),
        ("torch.Tensor.add_", (X, Y), {}, [X]),
        ("torch.Tensor.__setitem__", (X, 0, Y), {}, [X]),
        ("torch.nn.functional.relu", (X,), {}, []),
        ("torch.nn.functional.relu", (X,), {"inplace": True}, [X]),
        ("torch.nn.functional.relu", (X, True), {}, [X]),
        ("torch.batch_norm", (X, None, None, Y, MASK, False, 0.1, 1e-5, False), {}, []),
    ],
)
def test_what_a_call_changes_is_known(op: Any, name: str, args: Any, kwargs: Any, targets: list[Any]) -> None:
    found = op(name).targets(args, kwargs)

    assert [id(target) for target in found] == [id(target) for target in targets]


@pytest.mark.parametrize(
    ("name", "args", "discloses"),
    [
        ("torch.add", (X, Y), "nothing"),
        ("torch.nonzero", (X,), "form"),
        ("torch.Tensor.__getitem__", (X, 0), "nothing"),
        ("torch.Tensor.__getitem__", (X, MASK), "form"),
        ("torch.Tensor.__getitem__", (X, slice(Y[0], None)), "form"),
        ("torch.where", (MASK, X, Y), "nothing"),
        ("torch.where", (MASK,), "form"),
        ("torch.repeat_interleave", (X, 2), "nothing"),
        ("torch.repeat_interleave", (X, MASK), "form"),
    ],
)
def test_what_a_result_discloses_depends_on_the_call(op: Any, name: str, args: Any, discloses: str) -> None:
    assert op(name).disclosure(args, {}) == discloses


@pytest.mark.parametrize(
    ("name", "tier"),
    [
        ("torch.add", "reviewed"),
        ("torch.nonzero", "public"),
        ("torch.Tensor.item", "off"),
        ("torch.linalg.inv", "reviewed"),
    ],
)
def test_an_operation_has_a_tier(op: Any, name: str, tier: str) -> None:
    assert op(name).tier == tier


def test_facts_of_single_operations(op: Any) -> None:
    assert op("torch.Tensor.item").reveals
    assert op("torch.Tensor.backward").accumulates
    assert op("torch.Tensor.backward").differentiates
    assert op("torch.Tensor.retain_grad").retains
    assert op("torch.Tensor.requires_grad_").alters_autograd
    assert op("torch.dropout").random
    assert op("torch.empty_like").uninitialized
    assert op("torch.as_strided").reads_beyond
    assert op("torch.linalg.inv").partial
    assert not op("torch.add").partial
    assert op("torch.Tensor.size").states_fact


def test_operations_that_read_beyond_their_arguments_are_not_reviewed(hook: Any) -> None:
    beyond = [op for op in hook.attributes.ops if op.reads_beyond]

    assert beyond
    assert not [op.name for op in beyond if op.tier == "reviewed"]
