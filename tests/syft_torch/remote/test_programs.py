"""Programs give the same results on remote tensors as locally, or are refused with advice."""

from __future__ import annotations

import contextlib
import copy
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from torch import nn  # noqa: E402

import syft_core as sy  # noqa: E402
from syft_core.exceptions import NotCollocatedError, OperationNotAllowedError, ValueRefusedError, WrapperLeakError  # noqa: E402
from syft_core.hook.rules import leaves  # noqa: E402
from syft_core.plans.errors import PlanError  # noqa: E402
from syft_torch.versions import UNCHECKABLE  # noqa: E402

# --- fetching from a graph


def test_a_fetched_loss_has_no_local_graph(bob: Any) -> None:
    """Otherwise ``loss.backward()`` would silently do nothing."""
    model = nn.Linear(3, 1).send(bob)
    loss = model(torch.ones(2, 3).send(bob)).mean()

    fetched = loss.get()

    assert not fetched.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        fetched.backward()


def test_a_fetched_copy_has_no_local_graph_either(bob: Any) -> None:
    x = torch.ones(2, requires_grad=True).send(bob)
    hidden = x * 2

    assert not hidden.copy().get().requires_grad or hidden.requires_grad
    assert not hidden.get(deregister_ptr=False).requires_grad
    assert hidden.requires_grad


def test_leaves_and_parameters_keep_requires_grad(bob: Any) -> None:
    leaf = torch.ones(2, requires_grad=True).send(bob)
    model = nn.Linear(2, 1)
    model.bias.requires_grad_(False)

    assert leaf.get().requires_grad
    fetched = model.send(bob).get()
    assert fetched.weight.requires_grad
    assert not fetched.bias.requires_grad


def test_a_tensor_fetched_from_a_graph_keeps_its_tags(bob: Any) -> None:
    hidden = (torch.ones(2, requires_grad=True).send(bob) * 2).tag("hidden")

    assert "hidden" in hidden.get().tags


# --- changes in place inside a graph


def add_to_result(a: Any, b: Any) -> Any:
    hidden = a * 2
    hidden += b * 3
    return hidden


def change_a_view(a: Any, b: Any) -> Any:
    hidden = a * 2
    hidden[0].add_(b[0])
    return hidden


def change_the_base_of_a_view(a: Any, b: Any) -> Any:
    hidden = a * 2
    view = hidden[0]
    hidden.mul_(b)
    return view


def set_an_item(a: Any, b: Any) -> Any:
    hidden = a * 2
    hidden[1] = b[1]
    return hidden


def change_a_list(a: Any, b: Any) -> Any:
    hidden = a * 2
    torch._foreach_add_([hidden], [b])
    return hidden


def change_without_a_graph(a: Any, b: Any) -> Any:
    hidden = a * 2
    with torch.no_grad():
        hidden.add_(b)
    return hidden


def change_after_use(a: Any, b: Any) -> Any:
    hidden = a * 2
    before = hidden + 1
    hidden.add_(b)
    return before


@pytest.mark.parametrize(
    "change",
    [
        *(add_to_result, change_a_view, change_the_base_of_a_view, set_an_item, change_a_list),
        *(change_without_a_graph, change_after_use),
    ],
)
def test_every_operand_of_a_change_in_place_gets_its_gradient(change: Any, bob: Any, hook: Any) -> None:
    hook.attributes.warm_up()
    a, b = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    remote = [tensor.detach().send(bob).requires_grad_() for tensor in (a, b)]

    change(a, b).sum().backward()
    change(*remote).sum().backward()

    for leaf, there in zip((a, b), remote, strict=True):
        assert (there.grad is None) == (leaf.grad is None)
        assert leaf.grad is None or torch.equal(there.grad.get(), leaf.grad)


# --- gradients and data that a program keeps


def keep_a_gradient(p: Any) -> Any:
    (p * 2).sum().backward()
    kept = p.grad
    tripled = kept * 3
    p.grad = None
    (p * 5).sum().backward()
    return kept, tripled, p.grad, kept - p.grad


def keep_a_list_of_gradients(p: Any) -> Any:
    history, optimizer = [], torch.optim.SGD([p], lr=0.5)
    for scale in (1.0, 2.0, 3.0):
        optimizer.zero_grad()
        (p * p * scale).sum().backward()
        history.append(p.grad)
        optimizer.step()
    return torch.stack(history)


def keep_a_gradient_that_is_replaced_by_another(p: Any) -> Any:
    (p * 2).sum().backward()
    kept = p.grad
    p.grad = p.grad * 2
    return kept, p.grad


def keep_a_gradient_that_is_added_to(p: Any) -> Any:
    (p * 2).sum().backward()
    kept = p.grad
    (p * 3).sum().backward()
    p.grad += 1
    return kept, p.grad


def keep_a_gradient_while_a_graph_is_created(p: Any) -> Any:
    (p**2).sum().backward()
    kept = p.grad
    (p**3).sum().backward(create_graph=True)
    return kept, p.grad


def keep_a_gradient_that_is_differentiated(p: Any) -> Any:
    (p**3).sum().backward(create_graph=True)
    kept = p.grad
    p.grad = None
    kept.sum().backward()
    return kept, p.grad


def keep_a_gradient_reached_through_another_tensor(p: Any) -> Any:
    same = p.float()
    (p * 2).sum().backward()
    kept, others = p.grad, same.grad
    p.grad = None
    (p * 7).sum().backward()
    first, same.grad = same.grad, None
    (p * 3).sum().backward()
    return kept, others, first, p.grad


def keep_a_gradient_of_a_result(p: Any) -> Any:
    hidden = p * 2
    hidden.retain_grad()
    (hidden**2).sum().backward(retain_graph=True)
    kept, hidden.grad = hidden.grad, None
    (hidden**3).sum().backward()
    return kept, hidden.grad


def restore_kept_data(p: Any) -> Any:
    kept = p.data
    p.data = p.data * 2
    doubled = (p * 1).detach()
    p.data = kept
    return kept, doubled, p


def swap_data(p: Any) -> Any:
    other = torch.zeros_like(p)
    p.data, other.data = other.data, p.data
    return p, other


def reshape_after_reading_data(p: Any) -> Any:
    p = p.detach().view(1, -1)
    kept = p.data
    p.t_()
    return kept, p


def require_a_gradient_of_data(p: Any) -> Any:
    leaf = p.data.requires_grad_()
    (leaf * 2).sum().backward()
    return leaf.grad, p.grad is None


def add_to_data_of_a_view(p: Any) -> Any:
    view = p.detach().view(-1)
    p.data += 1
    p.data = p.data[1:]
    view.mul_(2)
    return view, p


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize(
    "program",
    [
        *(keep_a_gradient, keep_a_list_of_gradients, keep_a_gradient_that_is_replaced_by_another),
        *(keep_a_gradient_that_is_added_to, keep_a_gradient_while_a_graph_is_created),
        *(keep_a_gradient_that_is_differentiated, keep_a_gradient_reached_through_another_tensor),
        *(keep_a_gradient_of_a_result, restore_kept_data, swap_data, reshape_after_reading_data),
        *(require_a_gradient_of_data, add_to_data_of_a_view),
    ],
)
def test_gradients_and_data_are_tensors_of_their_own(program: Any, bob: Any) -> None:
    expected = leaves(program(torch.tensor([1.0, 2.0, 3.0], requires_grad=True)))

    found = leaves(program(torch.tensor([1.0, 2.0, 3.0]).send(bob).requires_grad_()))

    for one, other in zip(expected, found, strict=True):
        assert one is other if isinstance(one, bool) else torch.equal(one, other.copy().get())


def test_a_sparse_gradient_is_kept_when_a_dense_one_replaces_it(bob: Any) -> None:
    def run(layer: Any, index: Any) -> Any:
        layer(index).sum().backward()
        kept = layer.weight.grad
        (layer.weight**2).sum().backward()
        return kept.to_dense(), layer.weight.grad

    layer, index = nn.Embedding(4, 2, sparse=True), torch.tensor([0, 2, 0])
    remote = copy.deepcopy(layer).send(bob)

    for one, other in zip(run(layer, index), run(remote, index.send(bob)), strict=True):
        assert torch.equal(one, other.copy().get())


def test_a_gradient_that_nobody_keeps_costs_no_command(bob: Any) -> None:
    model, x = nn.Linear(3, 1).send(bob), torch.ones(2, 3).send(bob)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    counts = []
    for _ in range(3):
        with sy.trace() as trace:
            optimizer.zero_grad()
            model(x).sum().backward()
            assert model.weight.grad is model.weight.grad
            optimizer.step()
        counts.append(sum(event.operation == "positive" for event in trace.events))

    assert counts == [0, 0, 0]


# --- calls that return their operand


RETURN_THEIR_OPERAND = [
    lambda w: w.to(torch.float32),
    lambda w: w.float(),
    lambda w: w.contiguous(),
    lambda w: w.to("cpu"),
    lambda w: w.type_as(w),
    lambda w: +w,
    lambda w: w.float().contiguous(),
    lambda w: torch.broadcast_tensors(w, w + 1)[0],
    lambda w: nn.functional.dropout(w, 0.5, training=False),
]


@pytest.mark.parametrize("convert", RETURN_THEIR_OPERAND)
@pytest.mark.parametrize("kept", [False, True])
def test_a_parameter_learns_through_a_call_that_returns_it(convert: Any, kept: bool, bob: Any, hook: Any) -> None:
    hook.attributes.warm_up()
    weights = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3)).send(bob)]

    for weight in weights:
        optimizer, same = torch.optim.SGD([weight], lr=0.1), []
        for _ in range(2):
            optimizer.zero_grad()
            converted = convert(weight)
            same += [converted] if kept else []
            (converted * 2).sum().backward()
            assert converted.grad is not None
            optimizer.step()
        assert weight.grad is not None
        optimizer.zero_grad()
        assert weight.grad is None
        assert all(each.grad is None for each in same)

    assert torch.equal(weights[1].get(), weights[0])


def test_a_new_leaf_is_not_taken_for_an_operand_of_the_same_form(bob: Any, hook: Any) -> None:
    hook.attributes.warm_up()
    weight = torch.ones(3).send(bob).requires_grad_()

    made = torch.zeros_like(weight, requires_grad=True)
    made.sum().backward()

    assert made.grad is not None
    assert weight.grad is None


def require_after_converting(x: Any) -> Any:
    converted = x.float()
    x.requires_grad_()
    return converted


def require_the_converted(x: Any) -> Any:
    converted = x.to(torch.float32).contiguous()
    converted.requires_grad_()
    return x


def require_after_a_view(x: Any) -> Any:
    view = x.view(-1)
    x.requires_grad_()
    return view * x


def require_both_through_one(x: Any) -> Any:
    converted, other = x.float(), torch.full_like(x, 2.0, requires_grad=True)
    x.requires_grad_()
    return converted * other


def freeze_before_backward(x: Any) -> Any:
    doubled = x.requires_grad_() * 2 + torch.ones_like(x, requires_grad=True)
    x.requires_grad_(False)
    return doubled


def convert_with_a_gradient(x: Any) -> Any:
    x.grad = torch.full_like(x, 5.0)
    return x.contiguous().requires_grad_() * 2


def detach_the_converted(x: Any) -> Any:
    converted = x.requires_grad_().float()
    converted.detach_()
    return x * torch.ones_like(x, requires_grad=True)


@pytest.mark.parametrize(
    "prepare",
    [
        *(require_after_converting, require_the_converted, require_after_a_view, require_both_through_one),
        *(freeze_before_backward, convert_with_a_gradient, detach_the_converted),
    ],
)
def test_tensors_that_are_one_share_their_autograd_state(prepare: Any, bob: Any, hook: Any) -> None:
    hook.attributes.warm_up()
    x, remote = torch.ones(3), torch.ones(3).send(bob)

    for tensor in (x, remote):
        prepare(tensor).sum().backward()

    assert remote.requires_grad == x.requires_grad
    assert (remote.grad is None) == (x.grad is None)
    assert x.grad is None or torch.equal(remote.grad.get(), x.grad)


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
def test_remote_weights_can_be_initialized(fill: Any, bob: Any) -> None:
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
def test_a_remote_layer_is_reset_as_locally(make: Any, bob: Any) -> None:
    layer = make()
    remote = copy.deepcopy(layer).send(bob)
    reset = "_reset_parameters" if isinstance(layer, nn.MultiheadAttention) else "reset_parameters"

    for module in (layer, remote):
        torch.manual_seed(1)
        getattr(module, reset)()

    expected, found = layer.state_dict(), remote.get().state_dict()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_new_with_a_size_creates_a_tensor_on_the_worker(bob: Any) -> None:
    made = torch.ones(3, dtype=torch.float64).send(bob).new(2, 3)

    assert (made.shape, made.dtype) == ((2, 3), torch.float64)
    assert made.location is bob


@pytest.mark.parametrize("bounds", [(-2.0, 2.0), (1.0, 2.0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_truncated_normal_weights_have_the_same_bits_as_local_ones(bob: Any, dtype: Any, bounds: Any) -> None:
    weight = torch.full((50, 3), 7.0, dtype=dtype)
    remote = weight.send(bob)

    for tensor in (weight, remote):
        torch.manual_seed(1)
        assert nn.init.trunc_normal_(tensor, 0.0, 1.0, *bounds) is tensor

    assert torch.equal(remote.get(), weight)


def test_truncated_normal_weights_can_be_drawn_where_new_tensors_are_created(bob: Any) -> None:
    torch.manual_seed(1)
    expected = nn.init.trunc_normal_(torch.empty(50, 3))

    torch.manual_seed(1)
    with bob:
        made = nn.init.trunc_normal_(nn.Parameter(torch.zeros(50, 3)))

    assert torch.equal(made.get(), expected)


def test_a_plan_refuses_to_draw_truncated_normal_numbers_which_it_would_keep(bob: Any) -> None:
    with pytest.raises(PlanError, match="reads a value"):
        sy.Plan("draw", lambda x: nn.init.trunc_normal_(torch.zeros_like(x))).build(torch.zeros(50, 3))


def test_a_function_that_a_library_puts_in_place_of_an_initialization_runs_on_the_worker(
    bob: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    native, weight = nn.init.normal_, torch.zeros(5)
    remote = weight.send(bob)

    def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
        return native(tensor, mean=mean, std=std, generator=generator)

    monkeypatch.setattr(nn.init, "normal_", normal_)
    for tensor in (weight, remote):
        torch.manual_seed(1)
        nn.init.normal_(tensor, std=0.02)

    assert torch.equal(remote.get(), weight)


class MadeThere(nn.Module):
    """Creates tensors as models of transformers do."""

    mask: torch.Tensor
    positions: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("positions", torch.arange(5).expand((1, -1)), persistent=False)
        self.register_buffer("kinds", torch.zeros(self.positions.size(), dtype=torch.long), persistent=False)
        self.register_buffer("mask", torch.tril(torch.ones((5, 5), dtype=torch.bool)).view(1, 1, 5, 5))
        self.embedding, self.linear = nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 4))
        with torch.no_grad():
            self.embedding.weight.normal_(mean=0.0, std=0.02)
            self.embedding.weight.data[0].zero_()
        nn.init.trunc_normal_(self.linear.weight, std=0.02)
        nn.init.zeros_(self.linear.bias)
        nn.init.xavier_uniform_(self.token)

    def forward(self, ids: Any) -> Any:
        length = ids.shape[1]
        hidden = self.embedding(ids) + self.token + self.positions[:, :length, None].float()
        scores = hidden @ hidden.transpose(-1, -2)
        lowest = torch.finfo(scores.dtype).min
        scores = torch.where(self.mask[0, :, :length, :length], scores, torch.full([], lowest, dtype=scores.dtype))
        causal = torch.triu(torch.full((length, length), lowest), diagonal=1).to(scores)
        return self.linear((scores + causal).softmax(-1) @ hidden)


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_model_that_is_made_on_a_worker_gives_the_same_bits(bob: Any, is_sent: bool) -> None:
    ids = torch.randint(0, 7, (2, 5))
    torch.manual_seed(1)
    local = MadeThere()
    torch.manual_seed(1)
    with bob:
        model = MadeThere()
    local(ids).sum().backward()

    if is_sent:
        model.send(bob)
        model(ids.send(bob)).sum().backward()
    else:
        with bob:
            model(ids.send(bob)).sum().backward()

    for name, parameter in model.named_parameters():
        expected = local.get_parameter(name)
        assert torch.equal(parameter.copy().get(), expected)
        assert torch.equal(parameter.grad.copy().get(), expected.grad)


# --- comparisons, sizes and places


def test_assert_close_compares_copies_with_consent(bob: Any) -> None:
    x = torch.rand(3)
    p = x.send(bob)

    with pytest.raises(ValueRefusedError, match=r"cannot run 'torch.testing.assert_close' on a pointer.*sy.revealing"):
        torch.testing.assert_close(p, x)
    with sy.revealing("compare"):
        torch.testing.assert_close(p, x)
        torch.testing.assert_close(p, p)
        torch.testing.assert_close({"x": [p]}, {"x": [x.send(bob)]})
        with pytest.raises(AssertionError, match="not close"):
            torch.testing.assert_close(p, p + 1)
    assert torch.equal(p.get(), x)


def test_assert_close_in_a_plan_is_refused(bob: Any) -> None:
    with pytest.raises(PlanError, match="reads a value"), sy.revealing("compare"):
        sy.Plan("compare", lambda x: torch.testing.assert_close(x, x)).build(torch.zeros(3))


def test_the_size_of_the_storage_of_a_remote_tensor_is_known(bob: Any) -> None:
    storage = torch.zeros(3, 4, dtype=torch.float64).send(bob).untyped_storage()

    assert storage.nbytes() == storage.size() == len(storage) == 96
    assert sys.getsizeof(storage) > 96
    with pytest.raises(ValueRefusedError, match=r"cannot run 'torch.UntypedStorage.data_ptr' on a pointer to 'bob'"):
        storage.data_ptr()


def test_torchinfo_measures_a_remote_model_with_inputs_made_on_its_worker(bob: Any) -> None:
    """It makes an input by itself: only the block names the worker."""
    torchinfo = pytest.importorskip("torchinfo", reason="this machine does not have torchinfo")
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    local = torchinfo.summary(model, input_size=(2, 3, 8, 8), verbose=0)

    model.send(bob)
    with bob:
        remote = torchinfo.summary(model, input_size=(2, 3, 8, 8), verbose=0)

    assert str(remote) == str(local)


def test_an_input_of_a_size_is_made_on_the_worker_as_torchinfo_makes_it(bob: Any) -> None:
    model = nn.Linear(8, 2).send(bob)
    device = next(model.parameters()).device

    with bob:
        x = torch.rand(3, 8).to(device).type(torch.float32)

    assert model(x).location is bob
    with pytest.raises(NotCollocatedError, match=r'create it in a block "with p.location:"'):
        model(torch.rand(3, 8).to(device).type(torch.float32))


def test_a_local_tensor_goes_where_a_pointer_is_with_its_dtype(bob: Any) -> None:
    hidden, mask = torch.rand(2, 3, dtype=torch.float64), torch.tensor([True, False, True])
    p = hidden.send(bob)

    assert mask.to(p).location is bob
    assert torch.equal(torch.zeros(4).to(p).get(), torch.zeros(4, dtype=torch.float64))
    assert mask.type_as(p).dtype is torch.float64
    assert torch.equal((p * mask.to(p)).get(), hidden * mask)
    assert mask.dtype is torch.bool


def test_a_tensor_that_needs_a_gradient_does_not_go_where_a_pointer_is(bob: Any) -> None:
    with pytest.raises(NotCollocatedError, match=r"send the model: `model.send\('bob'\)`"):
        nn.Parameter(torch.zeros(3)).to(torch.zeros(3).send(bob))


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
def test_a_local_index_is_sent_with_the_call(pick: Any, bob: Any) -> None:
    x, index = torch.arange(12.0).view(3, 4), torch.tensor([2, 0, 1])

    assert torch.equal(pick(x.send(bob), index).get(), pick(x, index))


def test_a_local_index_is_sent_with_an_in_place_change(bob: Any) -> None:
    x = torch.zeros(4).send(bob)

    x[torch.tensor([1, 3])] = 2.0

    assert x.get().tolist() == [0, 2, 0, 2]


def test_a_random_batch_is_selected_as_locally(bob: Any) -> None:
    data = torch.randn(100, 3, requires_grad=True)
    remote = data.send(bob)

    for x in (data, remote):
        torch.manual_seed(0)
        x[torch.randperm(len(x))[:32]].square().sum().backward()

    assert torch.equal(remote.grad.copy().get(), data.grad)


def test_other_local_tensors_are_refused_next_to_an_index(bob: Any) -> None:
    x, index = torch.zeros(3).send(bob), torch.tensor([0, 1])

    with pytest.raises(NotCollocatedError, match=r"y.send\('bob'\)"):
        x[index] = torch.ones(2)
    with pytest.raises(NotCollocatedError, match=r"y.send\('bob'\)"):
        x.index_add(0, index, torch.ones(2))
    with pytest.raises(NotCollocatedError, match=r"y.send\('bob'\)"):
        x + torch.ones(3)
    assert x.get().tolist() == [0, 0, 0]


def test_a_local_model_with_remote_data_is_refused_with_advice(bob: Any) -> None:
    with pytest.raises(NotCollocatedError, match=r"model.send\('bob'\)"):
        nn.Linear(3, 1)(torch.ones(2, 3).send(bob))


# --- numbers, arrays and generators of this process


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x * np.float32(0.1),
        lambda x: np.float64(0.1) * x,
        lambda x: np.float32(0.1) - x,
        lambda x: x.long() * np.float32(0.1),
        lambda x: x.long() + np.int64(2),
        lambda x: x * np.bool_(True),
        lambda x: x.clamp(np.float16(0.5), np.int8(3)),
        lambda x: x.view(np.int64(2), 2),
        lambda x: x[np.array([3, 0])],
        lambda x: x[np.array([True, False, True, False])],
        lambda x: x[np.array(1)],
        lambda x: x[[np.int64(1), np.int64(2)]],
        lambda x: x.view(2, 2)[:, np.array([1])],
    ],
)
@pytest.mark.parametrize("with_numpy", [False, True])
@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept")
def test_numbers_and_indices_of_numpy_are_read_as_torch_reads_them(compute: Any, with_numpy: bool, bob: Any) -> None:
    x = torch.arange(4.0)

    with sy.NumpyHook(np) if with_numpy else contextlib.nullcontext():
        found, expected = compute(x.send(bob)).get(), compute(x)

    assert found.dtype is expected.dtype
    assert torch.equal(found, expected)


@pytest.mark.parametrize("other", [np.ones(4), np.array(2.0)])
def test_other_arrays_of_numpy_are_refused_with_advice(other: Any, bob: Any) -> None:
    with pytest.raises(NotCollocatedError, match=r"y = torch.asarray\(y\).send\('bob'\)"):
        torch.ones(4).send(bob) + other


@pytest.mark.parametrize(
    "draw",
    [
        lambda p, generator: torch.bernoulli(p, generator=generator),
        lambda p, generator: p.normal_(generator=generator),
        lambda p, generator: torch.multinomial(p, 2, generator=generator),
    ],
)
def test_a_local_generator_is_refused_because_a_worker_cannot_advance_it(draw: Any, bob: Any) -> None:
    p, generator = torch.full((4,), 0.5).send(bob), torch.Generator()

    with pytest.raises(NotCollocatedError, match="`generator = None`"):
        draw(p, generator)

    assert p.copy().get().tolist() == [0.5] * 4
    assert draw(p, None).location is bob


def test_functions_that_change_saved_tensors_are_refused(bob: Any) -> None:
    x = torch.ones(3).send(bob).requires_grad_()

    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved.half(), lambda saved: saved.float()):
        with pytest.raises(WrapperLeakError, match="saved_tensors_hooks"):
            x**2
        with torch.no_grad():
            assert (x**2).get().tolist() == [1, 1, 1]
    with torch.autograd.graph.save_on_cpu():
        (x**2).sum().backward()

    assert x.grad.get().tolist() == [2, 2, 2]


# --- torch's fast path


@pytest.mark.skipif(not UNCHECKABLE, reason="this torch can check the arguments of its fused kernels")
def test_a_fused_kernel_whose_arguments_cannot_be_checked_is_refused(bob: Any) -> None:
    x, weight, bias = torch.ones(2, 5, 8).send(bob), torch.ones(24, 8).send(bob), torch.ones(24).send(bob)

    with pytest.raises(OperationNotAllowedError, match="not memory-safe for all arguments"):
        torch._native_multi_head_attention(x, x, x, 8, 2, weight, bias, weight[:8], bias[:8])
