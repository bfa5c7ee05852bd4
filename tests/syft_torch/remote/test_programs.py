"""Programs that run on remote tensors give what they give at home, and the others are refused with a way out."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import syft_core as sy  # noqa: E402
from syft_core.exceptions import NotCollocatedError, ValueRefusedError  # noqa: E402

# --- what is fetched from inside a graph


def test_a_loss_that_is_fetched_has_no_graph_here(bob: Any) -> None:
    """Otherwise ``loss.backward()`` would do nothing, and say nothing."""
    model = nn.Linear(3, 1).send(bob)
    loss = model(torch.ones(2, 3).send(bob)).mean()

    fetched = loss.get()

    assert not fetched.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        fetched.backward()


def test_a_copy_of_a_part_of_a_graph_has_no_graph_here_either(bob: Any) -> None:
    x = torch.ones(2, requires_grad=True).send(bob)
    hidden = x * 2

    assert not hidden.copy().get().requires_grad or hidden.requires_grad
    assert not hidden.get(deregister_ptr=False).requires_grad
    assert hidden.requires_grad


def test_leaves_and_parameters_keep_what_they_require(bob: Any) -> None:
    leaf = torch.ones(2, requires_grad=True).send(bob)
    model = nn.Linear(2, 1)
    model.bias.requires_grad_(False)

    assert leaf.get().requires_grad
    fetched = model.send(bob).get()
    assert fetched.weight.requires_grad
    assert not fetched.bias.requires_grad


def test_what_is_fetched_from_a_graph_keeps_its_name(bob: Any) -> None:
    hidden = (torch.ones(2, requires_grad=True).send(bob) * 2).tag("hidden")

    assert "hidden" in hidden.get().tags


# --- the first tensor by keyword


@pytest.mark.parametrize(
    "fill",
    [
        lambda w: nn.init.normal_(w),
        lambda w: nn.init.normal_(tensor=w, std=2.0),
        lambda w: nn.init.uniform_(w, -1, 1),
        lambda w: nn.init.constant_(w, 0.5),
        lambda w: nn.init.zeros_(w),
        lambda w: nn.init.xavier_uniform_(w),
        lambda w: nn.init.kaiming_normal_(w),
        lambda w: nn.init.kaiming_uniform_(w, a=5**0.5),
        lambda w: nn.init.orthogonal_(w),
        lambda w: nn.init.eye_(w),
        lambda w: torch.relu_(input=w.detach()),
    ],
)
def test_weights_are_initialized_where_they_are(fill: Any, bob: Any) -> None:
    weight = nn.Parameter(torch.randn(4, 3))
    remote = nn.Parameter(weight.detach().clone()).send(bob)

    torch.manual_seed(1)
    with torch.no_grad():
        expected = fill(weight)
    torch.manual_seed(1)
    with torch.no_grad():
        result = fill(remote)

    assert torch.equal(result.copy().get(), expected)
    assert torch.equal(remote.copy().get(), weight)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(3, 4),
        lambda: nn.Conv2d(3, 4, 2),
        lambda: nn.BatchNorm1d(3),
        lambda: nn.LSTM(3, 4),
        lambda: nn.Embedding(3, 4),
        lambda: nn.LayerNorm(3),
        lambda: nn.MultiheadAttention(4, 2),
    ],
)
def test_a_remote_layer_is_reset_as_at_home(make: Any, bob: Any) -> None:
    layer = make()
    remote = copy.deepcopy(layer).send(bob)
    reset = "_reset_parameters" if isinstance(layer, nn.MultiheadAttention) else "reset_parameters"

    for module in (layer, remote):
        torch.manual_seed(1)
        getattr(module, reset)()

    expected, found = layer.state_dict(), remote.get().state_dict()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_an_initialization_that_reads_the_weights_needs_consent(bob: Any) -> None:
    weight = torch.full((50, 3), 7.0)
    remote = weight.send(bob)

    with pytest.raises(ValueRefusedError, match="sy.revealing"):
        nn.init.trunc_normal_(remote)
    assert torch.equal(remote.copy().get(), weight)

    for tensor in (weight, remote):
        torch.manual_seed(1)
        with sy.revealing("initialize"):
            nn.init.trunc_normal_(tensor)
    assert torch.equal(remote.get(), weight)


# --- local tensors


@pytest.mark.parametrize(
    "pick",
    [
        lambda x, i: x[i],
        lambda x, i: x[i, 1:],
        lambda x, i: x[:, i[:2]],
        lambda x, i: x[i, i[:1]],
        lambda x, i: x[i > 1],
        lambda x, i: x.index_select(0, i),
        lambda x, i: torch.index_select(x, 0, index=i),
        lambda x, i: x.gather(0, i[:, None].expand(3, 4)),
        lambda x, i: torch.gather(input=x, dim=0, index=i[:, None].expand(3, 4)),
        lambda x, i: x.take(i),
        lambda x, i: torch.take_along_dim(x, i[:, None], 0),
        lambda x, i: x.clone().index_fill_(0, i[:1], 5.0),
        lambda x, i: x.index_add(0, i, x),
    ],
)
def test_an_index_goes_along(pick: Any, bob: Any) -> None:
    x, index = torch.arange(12.0).view(3, 4), torch.tensor([2, 0, 1])

    assert torch.equal(pick(x.send(bob), index).get(), pick(x, index))


def test_an_index_goes_along_with_a_change_in_place(bob: Any) -> None:
    x = torch.zeros(4).send(bob)

    x[torch.tensor([1, 3])] = 2.0

    assert x.get().tolist() == [0, 2, 0, 2]


def test_a_random_batch_is_taken_as_at_home(bob: Any) -> None:
    data = torch.randn(100, 3, requires_grad=True)
    remote = data.send(bob)

    for x in (data, remote):
        torch.manual_seed(0)
        x[torch.randperm(len(x))[:32]].square().sum().backward()

    assert torch.equal(remote.grad.copy().get(), data.grad)


def test_an_index_does_not_let_other_local_tensors_along(bob: Any) -> None:
    x, index = torch.zeros(3).send(bob), torch.tensor([0, 1])

    with pytest.raises(NotCollocatedError, match=r"y.send\(bob\)"):
        x[index] = torch.ones(2)
    with pytest.raises(NotCollocatedError, match=r"y.send\(bob\)"):
        x.index_add(0, index, torch.ones(2))
    with pytest.raises(NotCollocatedError, match=r"y.send\(bob\)"):
        x + torch.ones(3)
    assert x.get().tolist() == [0, 0, 0]


def test_a_model_that_is_here_is_to_be_sent(bob: Any) -> None:
    with pytest.raises(NotCollocatedError, match=r"model.send\(bob\)"):
        nn.Linear(3, 1)(torch.ones(2, 3).send(bob))
