from __future__ import annotations

import copy
import gc
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from syft_core.exceptions import GetNotPermittedError, WorkerError, WorkerNotFoundError  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402
from syft_torch.module import create_grad_objects, module_is_missing_grad  # noqa: E402
from tests.syft_torch.remote.architectures import ARCHITECTURES, Tied, differences, frozen, twins  # noqa: E402


def linear() -> nn.Module:
    return nn.Linear(3, 2)


def train_step(model: Any, x: Any) -> Any:
    loss = model(x).pow(2).sum()
    loss.backward()
    return loss


class TestSendAndGet:
    def test_send_and_get_return_the_module_itself(self, bob: Any) -> None:
        model = linear()
        assert model.send(bob) is model
        assert model.get() is model

    def test_the_published_spellings_exist(self, bob: Any, alice: Any) -> None:
        model = linear()
        assert model.send_(bob, force_send=True).end_get().get_() is model

    def test_end_get_lets_the_worker_fetch_the_data(self, bob: Any, alice: Any) -> None:
        model, expected = twins(linear)
        model.send(bob).weight.remote_send(alice)
        assert model.end_get() is model
        assert alice.objects_count == 0
        assert differences(model.get(), expected) == []

    @pytest.mark.parametrize("name", ARCHITECTURES)
    def test_a_round_trip_changes_nothing(self, name: str, bob: Any) -> None:
        model, expected = twins(ARCHITECTURES[name].make)
        model.send(bob).get()
        assert differences(model, expected) == []
        assert [type(p) for p in model.parameters()] == [type(p) for p in expected.parameters()]
        assert [p.requires_grad for p in model.parameters()] == [p.requires_grad for p in expected.parameters()]
        assert bob.objects_count == 0

    def test_a_remaining_graph_does_not_change_a_fetched_model(self, bob: Any) -> None:
        model, x = nn.Sequential(linear(), nn.ReLU(), nn.Linear(2, 1)).send(bob), torch.rand(5, 3).send(bob)
        first, second = model(x).sum(), model(x).sum()
        first.backward()
        model.get()
        gradients = [parameter.grad.clone() for parameter in model.parameters()]
        second.backward()
        assert all(map(torch.equal, gradients, [parameter.grad for parameter in model.parameters()]))

    def test_a_remaining_graph_keeps_its_weights(self, bob: Any) -> None:
        model, x = linear(), torch.rand(5, 3, requires_grad=True).send(bob)
        expected = model.weight.detach().sum(0).expand(5, 3).clone()
        loss = model.send(bob)(x).sum()
        with torch.no_grad():
            model.get().weight.zero_()
        loss.backward()
        assert torch.equal(x.grad.get(), expected)

    def test_a_remaining_graph_keeps_weights_that_required_no_gradient_before(self, bob: Any) -> None:
        model, x = linear().requires_grad_(False), torch.rand(5, 3, requires_grad=True).send(bob)
        expected = model.weight.detach().sum(0).expand(5, 3).clone()
        loss = model.send(bob)(x).sum()
        model.weight.requires_grad_()
        with torch.no_grad():
            model.get().weight.zero_()
        loss.backward()
        assert torch.equal(x.grad.get(), expected)

    def test_the_parameter_objects_and_their_ids_stay_the_same(self, bob: Any, alice: Any) -> None:
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        tensors = [*model.parameters(), *model.buffers()]
        ids = [tensor.id for tensor in tensors]
        for step in (lambda: model.send(bob), lambda: model.move(alice), model.get):
            step()
            assert all(a is b for a, b in zip(tensors, [*model.parameters(), *model.buffers()], strict=True))
            assert [tensor.id for tensor in tensors] == ids

    def test_a_parameter_keeps_its_tags_and_attributes(self, bob: Any) -> None:
        model = linear()
        model.weight.tag("#w").describe("weights")
        model.weight.colour = "red"
        for _ in range(2):
            model.send(bob)
            assert (model.weight.tags, model.weight.description, model.weight.colour) == ({"#w"}, "weights", "red")
            model.get()
            assert (model.weight.tags, model.weight.description, model.weight.colour) == ({"#w"}, "weights", "red")

    def test_a_remote_parameter_is_a_parameter(self, bob: Any) -> None:
        weight = linear().send(bob).weight
        assert isinstance(weight, nn.Parameter)
        assert weight.shape == (2, 3)
        assert weight.requires_grad
        assert weight.is_leaf

    def test_parameters_and_buffers_are_sent(self, bob: Any) -> None:
        model = nn.BatchNorm1d(4).send(bob)
        assert {tensor.location.id for tensor in [*model.parameters(), *model.buffers()]} == {"bob"}
        assert bob.objects_count == 5

    def test_non_persistent_buffers_are_sent_too(self, bob: Any) -> None:
        model = nn.Module()
        model.register_buffer("mask", torch.ones(2), persistent=False)
        assert model.send(bob).mask.location is bob

    def test_a_worker_is_found_by_its_name(self, bob: Any) -> None:
        assert linear().send("bob").location is bob

    def test_location_and_owner(self, hook: Any, bob: Any) -> None:
        model = linear()
        assert (model.location, model.owner) == (None, hook.local_worker)
        model.send(bob)
        assert (model.location, model.owner) == (bob, hook.local_worker)
        assert model.get().location is None
        assert nn.ReLU().owner is hook.local_worker

    def test_a_module_without_tensors_can_be_sent(self, bob: Any, alice: Any) -> None:
        assert nn.ReLU().send(bob).move(alice).get().location is None

    def test_existing_gradients_are_sent(self, bob: Any, alice: Any) -> None:
        model, expected = twins(linear)
        for twin in (model, expected):
            train_step(twin, torch.ones(4, 3))
        model.send(bob)
        assert model.weight.grad is not None
        model.move(alice).get()
        assert differences(model, expected) == []

    def test_missing_gradients_stay_missing(self, bob: Any) -> None:
        model = linear().send(bob)
        assert model.weight.grad is None
        assert model.get().weight.grad is None

    def test_missing_gradients_are_set_to_zeros_on_request(self, bob: Any) -> None:
        model = linear()
        model.bias.requires_grad_(False)
        assert module_is_missing_grad(model)
        model.send(bob, preinitialize_grad=True)
        assert not module_is_missing_grad(model)
        assert model.bias.grad is None
        there = linear().send(bob)
        create_grad_objects(there)
        for sent in (model, there):
            assert not sent.get().weight.grad.any()

    def test_a_worker_never_shares_memory_with_the_sender(self, bob: Any) -> None:
        model = linear()
        alias = model.weight.data
        model.send(bob)
        alias.zero_()
        assert model.get().weight.abs().sum() > 0

    def test_a_model_can_be_fetched_while_its_loss_is_alive(self, bob: Any) -> None:
        model = linear().send(bob)
        loss = train_step(model, torch.ones(4, 3).send(bob))
        model.get()
        assert loss.get().shape == ()

    def test_a_local_graph_does_not_survive_sending(self, bob: Any) -> None:
        model = linear()
        loss = model(torch.ones(4, 3)).sum()
        model.send(bob)
        with pytest.raises(WorkerError, match="whose data has been moved, shared or replaced since"):
            loss.backward()

    def test_repeated_moves_leave_nothing_behind(self, bob: Any, alice: Any) -> None:
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        x, y = torch.ones(4, 3).send(bob), torch.ones(4, 3).send(alice)
        for _ in range(5):
            for data in (x, y):
                train_step(model.send(data.location), data)
                model.get()
        assert (bob.objects_count, alice.objects_count) == (1, 1)


class TestTiedAndFrozen:
    def test_tied_weights_stay_tied(self, bob: Any, alice: Any) -> None:
        model = Tied()
        for step in (lambda: model.send(bob), lambda: model.move(alice), model.get):
            step()
            assert model.again.weight is model.encoder.weight
        assert len(list(model.parameters())) == 3

    def test_a_tied_weight_is_sent_once(self, bob: Any) -> None:
        Tied().send(bob)
        model = Tied().send(bob)
        assert bob.objects_count == len(list(model.parameters()))

    def test_frozen_parameters_stay_frozen(self, bob: Any) -> None:
        model = frozen()
        before = [p.requires_grad for p in model.parameters()]
        model.send(bob)
        assert [p.requires_grad for p in model.parameters()] == before
        train_step(model, torch.ones(4, 5).send(bob))
        assert [p.grad is not None for p in model.parameters()] == before

    def test_a_remote_model_can_be_frozen(self, bob: Any) -> None:
        model = linear().send(bob).requires_grad_(False)
        assert not model.get().weight.requires_grad


class TestMove:
    def test_move_returns_the_module(self, bob: Any, alice: Any) -> None:
        model, expected = twins(linear)
        assert model.send(bob).move(alice) is model
        assert model.location is alice
        assert (bob.objects_count, alice.objects_count) == (0, 2)
        assert differences(model.get(), expected) == []

    def test_moving_to_the_same_worker_changes_nothing(self, bob: Any) -> None:
        model = linear().send(bob)
        place = model.weight.id_at_location
        assert model.move(bob).weight.id_at_location == place

    def test_moving_to_the_local_worker_fetches_the_module(self, hook: Any, bob: Any) -> None:
        model = linear().send(bob).move(hook.local_worker)
        assert model.location is None
        assert type(model.weight) is nn.Parameter

    def test_models_are_averaged_by_a_third_worker(self, hook: Any, bob: Any, alice: Any) -> None:
        secure = VirtualWorker(hook, id="secure")
        model = linear()
        theirs = [model.copy().send(worker) for worker in (bob, alice)]
        for twin, shift in zip(theirs, (1.0, 3.0), strict=True):
            with torch.no_grad():
                twin.weight.add_(shift)
            twin.move(secure)
        expected = model.weight.detach() + 2.0
        with torch.no_grad():
            model.weight.set_(((theirs[0].weight.data + theirs[1].weight.data) / 2).get())
        assert torch.allclose(model.weight, expected)
        assert (bob.objects_count, alice.objects_count) == (0, 0)


class TestCopy:
    @pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: model.copy()], ids=["deepcopy", "copy"])
    def test_a_remote_model_is_copied_on_its_worker(self, bob: Any, duplicate: Any) -> None:
        model, expected = twins(linear)
        twin = duplicate(model.send(bob))
        assert twin.location is bob
        assert isinstance(twin.weight, nn.Parameter)
        assert len(bob.ledger) == 0
        with torch.no_grad():
            twin.weight.zero_()
        assert differences(model.get(), expected) == []
        assert not twin.get().weight.any()

    def test_the_copy_of_a_tied_model_is_tied(self, bob: Any) -> None:
        twin = copy.deepcopy(Tied().send(bob))
        assert twin.again.weight is twin.encoder.weight

    def test_a_copy_has_copies_of_the_gradients(self, bob: Any) -> None:
        model = linear().send(bob)
        train_step(model, torch.ones(4, 3).send(bob))
        twin = model.copy()
        assert torch.equal(twin.get().weight.grad, model.get().weight.grad)

    def test_a_fetched_copy_has_no_helpers(self, bob: Any) -> None:
        model = nn.LSTM(3, 2).send(bob)
        for twin in (copy.deepcopy(model).get(), model.get()):
            assert not twin._forward_pre_hooks
            assert not twin._load_state_dict_pre_hooks


class TestStateDict:
    def test_the_state_of_a_remote_model_is_remote(self, bob: Any) -> None:
        state = nn.BatchNorm1d(2).send(bob).state_dict()
        assert {value.location.id for value in state.values()} == {"bob"}
        assert len(bob.ledger) == 0

    def test_remote_state_can_be_loaded_into_a_remote_model(self, bob: Any) -> None:
        model, expected = twins(linear)
        other = linear().send(bob)
        other.load_state_dict(model.send(bob).state_dict())
        assert differences(other.get(), expected) == []

    def test_local_state_can_be_loaded_into_a_remote_model(self, bob: Any) -> None:
        model, expected = twins(lambda: nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)))
        other = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).send(bob)
        state = model.state_dict()
        assert other.load_state_dict(state).missing_keys == []
        assert other.location is bob
        assert all(type(value) is torch.Tensor for value in state.values())
        assert differences(other.get(), expected) == []

    def test_remote_state_cannot_be_loaded_into_a_local_model(self, bob: Any) -> None:
        model, expected = twins(linear)
        with pytest.raises(RuntimeError, match="it would implicitly reveal a value from 'bob' by writing it"):
            model.load_state_dict(linear().send(bob).state_dict())
        assert differences(model, expected) == []

    def test_state_of_another_worker_is_refused(self, bob: Any, alice: Any) -> None:
        model = linear().send(bob)
        with pytest.raises(RuntimeError, match="live on 'bob' and 'alice'"):
            model.load_state_dict(linear().send(alice).state_dict())

    def test_remote_state_can_be_assigned(self, bob: Any) -> None:
        model = linear()
        model.load_state_dict(linear().send(bob).state_dict(), assign=True)
        assert model.location is bob

    def test_pointers_cannot_be_saved(self, bob: Any, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError, match="cannot save or pickle a pointer: its data is on 'bob'; fetch it first"):
            torch.save(linear().send(bob).state_dict(), tmp_path / "model.pt")

    def test_a_fetched_model_can_be_loaded_without_this_library(self, bob: Any, tmp_path: Path) -> None:
        model = nn.LSTM(3, 2).send(bob)
        train_step(lambda x: model(x)[0], torch.ones(4, 1, 3).send(bob))
        torch.save(model.get().state_dict(), tmp_path / "state.pt")
        torch.save(model, tmp_path / "model.pt")
        program = (
            "import sys, torch\n"
            "model = torch.load(sys.argv[1] + '/model.pt', weights_only=False)\n"
            "model.load_state_dict(torch.load(sys.argv[1] + '/state.pt'))\n"
            "model(torch.ones(4, 1, 3))\n"
            "assert not any(name.startswith('syft') for name in sys.modules)\n"
        )
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=120)


class TestLayers:
    @pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
    @pytest.mark.parametrize(
        ("layer", "shape"),
        [
            (lambda: nn.LSTM(3, 4, proj_size=2, bidirectional=True), (5, 2, 3)),
            (lambda: nn.LSTM(3, 4), (5, 3)),
            (lambda: nn.GRU(3, 4, num_layers=2, batch_first=True), (2, 5, 3)),
            (lambda: nn.RNN(3, 4, nonlinearity="relu"), (5, 2, 3)),
            (lambda: nn.LSTMCell(3, 4), (2, 3)),
            (lambda: nn.GRUCell(3, 4), (2, 3)),
            (lambda: nn.RNNCell(3, 4), (3,)),
        ],
        ids="lstm-projected lstm-unbatched gru-deep rnn lstm-cell gru-cell rnn-cell-unbatched".split(),
    )
    def test_recurrent_layers_start_from_zeros(self, layer: Any, shape: tuple[int, ...], bob: Any) -> None:
        model, expected = twins(layer)
        x = torch.randn(shape)
        model.send(bob)
        for given in (model(x.send(bob)), model(input=x.send(bob))):
            for ours, theirs in zip(flat(given), flat(expected(x)), strict=True):
                assert torch.equal(ours.get(), theirs)

    def test_recurrent_layers_accept_a_state(self, bob: Any) -> None:
        model, expected = twins(lambda: nn.GRU(3, 4))
        x, h = torch.randn(5, 2, 3), torch.randn(1, 2, 4)
        output, _ = model.send(bob)(x.send(bob), h.send(bob))
        assert torch.equal(output.get(), expected(x, h)[0])

    def test_a_layer_is_evaluated_on_its_worker(self, bob: Any) -> None:
        for architecture in ARCHITECTURES.values():
            model, expected = twins(architecture.make)
            x, _ = architecture.data()
            with torch.no_grad():
                ours, theirs = model.send(bob).eval()(x.send(bob)), expected.eval()(x)
            assert torch.allclose(ours.get(), theirs, atol=1e-6)

    def test_a_remote_model_can_be_converted(self, bob: Any) -> None:
        model, expected = twins(linear)
        for twin in (model.send(bob), expected):
            x = torch.ones(4, 3, dtype=torch.float64)
            train_step(twin.double(), x.send(bob) if twin is model else x)
        assert model.weight.dtype is torch.float64
        assert differences(model.get(), expected) == []

    @pytest.mark.parametrize("set_to_none", [True, False])
    def test_remote_gradients_are_cleared(self, bob: Any, set_to_none: bool) -> None:
        model = linear().send(bob)
        train_step(model, torch.ones(4, 3).send(bob))
        model.zero_grad(set_to_none=set_to_none)
        grad = model.get().weight.grad
        assert grad is None if set_to_none else not grad.any()


class TestRefusals:
    def test_several_workers_are_refused(self, bob: Any, alice: Any) -> None:
        with pytest.raises(WorkerError, match="cannot send a Linear to 2 workers: .*model.copy\\(\\).send"):
            linear().send(bob, alice)
        with pytest.raises(WorkerError, match="to 0 workers"):
            linear().send()

    def test_a_remote_model_cannot_be_sent_again(self, bob: Any, alice: Any) -> None:
        model = linear().send(bob)
        with pytest.raises(WorkerError, match="cannot send a Linear to 'alice': it is on 'bob'; move it: `model.move"):
            model.send(alice)
        assert model.location is bob

    @pytest.mark.parametrize("verb", ["get", "move"])
    def test_a_local_model_cannot_be_fetched_or_moved(self, bob: Any, verb: str) -> None:
        model = linear().send(bob).get()
        with pytest.raises(WorkerError, match=f"cannot {verb} a Linear: it is in this process; use it as it is"):
            getattr(model, verb)(*[bob] * (verb == "move"))

    def test_an_unknown_worker_is_named(self, bob: Any, alice: Any) -> None:
        model = linear()
        with pytest.raises(WorkerNotFoundError, match="'carol'"):
            model.send("carol")
        with pytest.raises(WorkerNotFoundError, match="'carol'"):
            model.send(bob).move("carol")
        assert model.location is bob

    def test_a_refused_fetch_moves_nothing(self, bob: Any, alice: Any) -> None:
        model = frozen().send(bob)
        x = torch.ones(4, 5).send(bob)
        train_step(model, x)
        last = list(model.parameters())[-1].id_at_location
        kept = bob.object_store.entry(last)
        bob.policy = lambda verb, stored, peer, value: "no" if verb in ("read", "move") and stored is kept else None
        for leave in (model.get, lambda: model.move(alice)):
            with pytest.raises(GetNotPermittedError):
                leave()
            assert {p.location.id for p in model.parameters()} == {"bob"}
        train_step(model, x)
        assert alice.objects_count == 0

    def test_a_tensor_with_weak_references_is_refused_before_anything_is_sent(self, bob: Any) -> None:
        model = linear()
        reference = weakref.ref(model.bias)
        with pytest.raises(WorkerError, match="there are weak references to it"):
            model.send(bob)
        assert reference() is model.bias
        assert type(model.weight) is nn.Parameter
        assert bob.objects_count == 0

    def test_a_tensor_in_an_open_graph_is_refused_before_anything_is_sent(self, bob: Any) -> None:
        model = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
        result = model(torch.ones(4, 3)).sum()
        with pytest.raises(WorkerError, match="an autograd graph needs it for a backward pass"):
            model.send(bob)
        assert {type(parameter) for parameter in model.parameters()} == {nn.Parameter}
        assert bob.objects_count == 0
        result.backward()
        assert model.send(bob)[0].weight.grad is not None

    def test_a_buffer_in_an_open_graph_is_refused_too(self, bob: Any) -> None:
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2).eval())
        result = model(torch.ones(4, 3)).sum()
        with pytest.raises(WorkerError, match="an autograd graph needs it"):
            model.send(bob)
        assert bob.objects_count == 0
        del result
        assert model.send(bob).location is bob

    def test_layers_above_a_pointer_can_be_fetched_but_not_moved(self, bob: Any, alice: Any) -> None:
        model = linear()
        model.weight = nn.Parameter(LoggingTensor().on(torch.ones(2, 3).send(bob)))
        model.bias = None
        with pytest.raises(WorkerError, match="cannot move a LoggingTensor in place: .* `model.get"):
            model.move(alice)
        assert type(model.get().weight.child) is LoggingTensor
        assert isinstance(model.weight, nn.Parameter)

    def test_a_lazy_module_is_refused(self, bob: Any) -> None:
        with pytest.raises(WorkerError, match="no shape yet"):
            nn.LazyLinear(2).send(bob)

    @pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")  # torch 2.15 calls it so
    def test_torchscript_is_refused(self, bob: Any) -> None:
        with pytest.raises(WorkerError, match="TorchScript"):
            nn.Sequential(torch.jit.script(linear())).send(bob)

    def test_a_local_input_is_refused(self, bob: Any) -> None:
        with pytest.raises(TypeError, match="its arguments live on 'bob' and in this process"):
            linear().send(bob)(torch.ones(4, 3))


class TestPlainModules:
    @pytest.mark.parametrize("made", ["before hooking", "while hooked"])
    def test_a_modules_own_names_take_precedence(self, made: str) -> None:
        class Shop(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.send = nn.Linear(1, 1)
                self.owner = "Ann"
                self.location = nn.Parameter(torch.ones(1))
                self.register_buffer("copy", torch.zeros(1))
                self.add_module("move", nn.ReLU())

            def get(self) -> str:
                return "got"

        early = Shop()
        with TorchHook(torch):
            shop = early if made == "before hooking" else Shop()
            assert isinstance(shop.send, nn.Linear)
            assert isinstance(shop.move, nn.ReLU)
            assert not shop.copy.any()
            assert shop.owner == "Ann"
            assert isinstance(shop.location, nn.Parameter)
            assert shop.get() == "got"
            assert list(dict(shop.named_parameters())) == ["location", "send.weight", "send.bias"]

    def test_a_parameter_with_the_name_of_an_added_method_is_sent(self, bob: Any) -> None:
        model = linear()
        model.location = nn.Parameter(torch.ones(1))
        model.send(bob)
        assert model.location.location is bob
        assert model.get().location.tolist() == [1.0]

    @pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")  # torch 2.15 calls it so
    def test_modules_are_scripted_while_torch_is_hooked(self, hook: Any) -> None:
        scripted = torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.LSTM(2, 2)))
        assert scripted(torch.ones(1, 3))[0].shape == (1, 2)

    def test_unhooking_removes_every_name(self) -> None:
        before = set(dir(nn.Module)) | set(dir(torch.optim.Optimizer))
        with TorchHook(torch):
            assert hasattr(nn.Module, "send")
            assert hasattr(torch.optim.Optimizer, "collocate")
        assert set(dir(nn.Module)) | set(dir(torch.optim.Optimizer)) == before
        assert not hasattr(nn.Module, "send")


def flat(results: Any) -> list[Any]:
    if isinstance(results, tuple):
        return [leaf for result in results for leaf in flat(result)]
    return [results]


class AddsOnes(nn.Module):
    """A layer that creates a tensor."""

    def forward(self, x: Any) -> Any:
        return x + torch.ones(2)


SEQUENCES: dict[str, Any] = {
    "convolution": lambda: [nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), nn.SiLU()],
    "no bias": lambda: [nn.Conv2d(2, 3, 3, bias=False), nn.GELU(approximate="tanh"), nn.Flatten()],
    "norm": lambda: [nn.LayerNorm((6, 6)), nn.LeakyReLU(0.2), nn.AvgPool2d(2)],
    "norm without weights": lambda: [nn.LayerNorm(6, elementwise_affine=False), nn.Tanh()],
    "inner sequence": lambda: [nn.Sequential(nn.Flatten(1), nn.Linear(72, 4)), nn.Sequential(), nn.LogSoftmax(dim=1)],
    "in place": lambda: [nn.ReLU(inplace=True), nn.Conv2d(2, 2, 1)],
    "maxima": lambda: [nn.MaxPool2d(2), nn.Sigmoid(), nn.Softmax(dim=-1)],
    "a frozen layer": lambda: [nn.Conv2d(2, 2, 1).requires_grad_(False), nn.ReLU()],
}


class TestLayersWithoutAMode:
    """Torch's own layers run without the mode that creates tensors on the worker; code of users needs it."""

    def test_a_sequence_of_layers_computes_the_same_bits(self, bob: Any) -> None:
        def make() -> nn.Module:
            inner = nn.Sequential(nn.Linear(4, 4, bias=False), nn.ReLU(inplace=True), nn.LayerNorm(4))
            return nn.Sequential(nn.Linear(3, 4), inner, nn.Dropout(0.0), nn.Softmax(dim=1))

        model, expected = twins(make)
        x = torch.rand(2, 3)
        assert torch.equal(model.send(bob)(x.send(bob)).get(), expected(x))

    @pytest.mark.parametrize("make", SEQUENCES.values(), ids=SEQUENCES)
    def test_a_sequence_is_trained_with_the_same_bits(self, make: Any, bob: Any) -> None:
        model, expected = twins(lambda: nn.Sequential(nn.Conv2d(1, 2, 3), *make()))
        x = torch.rand(2, 1, 8, 8)
        model.send(bob)(x.send(bob)).sum().backward()
        expected(x).sum().backward()
        model.get()
        for own, other in zip(model.parameters(), expected.parameters(), strict=True):
            assert (own.grad is None) == (other.grad is None)
            assert own.grad is None or torch.equal(own.grad, other.grad)

    @pytest.mark.parametrize("serialize", [False, True])
    def test_the_argument_of_a_layer_may_be_named(self, serialize: bool, hook: Any) -> None:
        worker = VirtualWorker(hook, id="named", serialize=serialize)
        x = torch.rand(2, 3)
        for make in (linear, nn.Tanh, lambda: nn.Sequential(linear(), nn.ReLU())):
            model, expected = twins(make)
            assert torch.equal(model.send(worker)(input=x.send(worker)).get(), expected(input=x))

    def test_a_layer_that_is_used_twice_is_trained_with_the_same_bits(self, bob: Any) -> None:
        def make() -> nn.Module:
            twice = nn.Linear(3, 3)
            return nn.Sequential(twice, nn.Tanh(), twice)

        model, expected = twins(make)
        x = torch.rand(2, 3)
        model.send(bob)(x.send(bob)).sum().backward()
        expected(x).sum().backward()
        assert torch.equal(model.get()[0].weight.grad, expected[0].weight.grad)

    def test_the_ledger_names_the_data_and_the_weights_of_all_layers(self, bob: Any) -> None:
        model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
        for name, parameter in model.named_parameters():
            parameter.tag(f"#{name}")
        model.send(bob)(torch.rand(2, 3).tag("#data").send(bob)).get()
        assert set(bob.ledger[-1].names) == {"#data", "#0.weight", "#0.bias", "#2.weight", "#2.bias"}

    def test_a_sequence_that_fails_leaves_nothing_behind(self, bob: Any) -> None:
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(5, 1)).send(bob)
        x = torch.rand(2, 3).send(bob)
        before = bob.objects_count
        with pytest.raises((RuntimeError, WorkerError), match="shape|size"):
            model(x).get()
        gc.collect()
        assert torch.equal((x * 0).get(), torch.zeros(2, 3))
        assert bob.objects_count <= before

    def test_a_hook_that_is_added_to_a_remote_layer_creates_tensors_on_the_worker(self, bob: Any) -> None:
        model, expected = twins(lambda: nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
        model.send(bob)
        x = torch.rand(2, 3)
        for layer in (model[0], expected[0]):
            layer.register_forward_hook(lambda _layer, _args, result: result + torch.ones(2))
        assert torch.equal(model(x.send(bob)).get(), expected(x))
        assert torch.equal(model[0](x.send(bob)).get(), expected[0](x))

    def test_a_global_hook_creates_tensors_on_the_worker(self, bob: Any) -> None:
        model, expected = twins(linear)
        model.send(bob)
        x = torch.rand(2, 3)
        add_ones = lambda _layer, _args, result: result + torch.ones(2)  # noqa: E731  # shorter than a def
        with nn.modules.module.register_module_forward_hook(add_ones):
            assert torch.equal(model(x.send(bob)).get(), expected(x))

    def test_a_forward_that_replaces_that_of_a_layer_creates_tensors_on_the_worker(
        self, bob: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model, expected = twins(lambda: nn.Sequential(nn.Linear(3, 2), nn.Sigmoid()))
        model.send(bob)
        x = torch.rand(2, 3)
        for each in (model, expected):
            each[0].forward = lambda given, layer=each[0]: nn.Linear.forward(layer, given) + torch.ones(2)
        assert torch.equal(model(x.send(bob)).get(), expected(x))
        for each in (model, expected):
            del each[0].forward
        monkeypatch.setattr(nn.Sigmoid, "forward", lambda _layer, given: given + torch.ones(2))
        assert torch.equal(model(x.send(bob)).get(), expected(x))

    def test_a_layer_that_is_added_to_a_remote_sequence_creates_tensors_on_the_worker(self, bob: Any) -> None:
        model, expected = twins(lambda: nn.Sequential(nn.Linear(3, 2)))
        model.send(bob)
        x = torch.rand(2, 3)
        for each in (model, expected):
            each.append(AddsOnes())
        assert torch.equal(model(x.send(bob)).get(), expected(x))

    def test_a_sequence_inside_of_a_layer_of_a_user_leaves_its_mode_as_it_was(self, bob: Any) -> None:
        class Around(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = nn.Sequential(nn.Linear(3, 2), nn.ReLU())

            def forward(self, x: Any) -> Any:
                return self.inner(x) + torch.ones(2)

        model, expected = twins(Around)
        x = torch.rand(2, 3)
        assert torch.equal(model.send(bob)(x.send(bob)).get(), expected(x))
        with pytest.raises((RuntimeError, WorkerError)):
            model(torch.rand(2, 5).send(bob)).get()
        assert torch._C._len_torch_function_stack() == 0

    def test_a_weight_that_is_not_a_parameter_is_used(self, bob: Any) -> None:
        model, expected = twins(lambda: nn.Sequential(nn.Linear(3, 2)))
        model.send(bob)
        x, weight = torch.rand(2, 3), torch.rand(2, 3)
        for each in (model, expected):
            del each[0].weight
        model[0].weight, expected[0].weight = weight.send(bob), weight
        assert torch.equal(model(x.send(bob)).get(), expected(x))

    def test_a_mode_of_the_user_sees_the_functions_of_layers_and_the_backward_pass(self, hook: Any) -> None:
        class Names(torch.overrides.TorchFunctionMode):
            def __init__(self) -> None:
                super().__init__()
                self.names: list[str] = []

            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                self.names.append(getattr(func, "__name__", ""))
                return func(*args, **(kwargs or {}))

        carol = VirtualWorker(hook, id="carol", serialize=False)
        model = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).send(carol)
        x = torch.rand(2, 3).send(carol)
        with Names() as seen:
            model(x).sum().backward()
        assert [name for name in seen.names if name in ("linear", "relu", "backward")] == ["linear", "relu", "backward"]
