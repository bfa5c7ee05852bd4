"""Tools for modules, such as hooks, pruning and compilation, work on remote modules or are refused with advice."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations, prune  # noqa: E402
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn  # noqa: E402

from syft_core.exceptions import WorkerError, WrapperLeakError  # noqa: E402


def net() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))


def same_state(one: Any, other: Any) -> bool:
    expected, found = one.state_dict(), other.state_dict()
    return list(expected) == list(found) and all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.fixture
def x() -> Any:
    torch.manual_seed(1)
    return torch.randn(3, 4)


def test_forward_hooks_see_and_change_inputs_and_outputs(bob: Any, x: Any) -> None:
    seen: list[Any] = []

    def watch(module: Any, args: Any) -> Any:
        seen.append(args[0].shape)
        return (args[0] * 2,)

    model = net()
    remote = copy.deepcopy(model).send(bob)
    results = []
    for module, data in ((model, x), (remote, x.send(bob))):
        module[0].register_forward_pre_hook(watch)
        module[2].register_forward_hook(lambda _module, _args, output: output + 1)
        results.append(module(data))

    assert torch.equal(results[1].get(), results[0].detach())
    assert seen[0] == seen[1]


@pytest.mark.parametrize("needs_grad", [False, True])
@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_full_backward_hooks_see_and_change_gradients(needs_grad: bool, bob: Any, x: Any) -> None:
    model = net()
    remote = copy.deepcopy(model).send(bob)
    seen: dict[str, list[Any]] = {"home": [], "there": []}
    for place, module, data in (("home", model, x), ("there", remote, x.send(bob))):

        def watch(_module: Any, inputs: Any, outputs: Any, place: str = place) -> Any:
            seen[place].append(outputs[0])
            return tuple(None if gradient is None else gradient * 2 for gradient in inputs)

        for layer in module:
            layer.register_full_backward_hook(watch)
        module[2].register_full_backward_pre_hook(lambda _module, outputs: (outputs[0] * 3,))
        module(data.clone().requires_grad_(needs_grad)).square().sum().backward()

    assert len(seen["home"]) == len(seen["there"]) == 3
    assert all(torch.equal(a, b.copy().get()) for a, b in zip(seen["home"], seen["there"], strict=True))
    grads = [(p.grad, q.grad.copy().get()) for p, q in zip(model.parameters(), remote.parameters(), strict=True)]
    assert all(torch.equal(a, b) for a, b in grads)


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
@pytest.mark.parametrize(
    "convert",
    [
        lambda model, bob: model.send(bob),
        lambda model, bob: model[0].weight.send_(bob),
        lambda model, bob: model.fix_precision(),
        lambda model, bob: model[0].weight.fix_precision_(),
    ],
)
def test_a_parameter_with_hooks_is_refused_as_a_worker_does_not_run_them(bob: Any, register: str, convert: Any) -> None:
    model, expected = net(), net()
    handle = getattr(model[0].weight, register)(lambda _: None)

    with pytest.raises(WorkerError, match=r"cannot move a tensor with hooks: .* `handle.remove\(\)`"):
        convert(model, bob)

    assert same_state(model, expected)
    handle.remove()
    convert(model, bob)


def test_a_module_is_called_with_other_parameters(bob: Any, x: Any) -> None:
    model = net()
    remote = copy.deepcopy(model).send(bob)

    others = {name: value * 2 for name, value in model.named_parameters()}
    expected = torch.func.functional_call(model, others, (x,))
    others = {name: value * 2 for name, value in remote.named_parameters()}
    found = torch.func.functional_call(remote, others, (x.send(bob),))

    assert torch.equal(found.get(), expected.detach())


@pytest.mark.parametrize(
    "transform",
    [
        lambda x: torch.func.grad(lambda z: z.sin().sum())(x),
        lambda x: torch.func.vmap(torch.sin)(x),
        lambda x: torch.func.jacrev(torch.sin)(x),
        lambda x: torch.func.vjp(torch.sin, x),
        lambda x: torch.func.jvp(torch.sin, (x,), (x,)),
        lambda x: torch.func.jacfwd(torch.sin)(x),
    ],
)
def test_function_transforms_are_refused_by_name(transform: Any, bob: Any, x: Any) -> None:
    with pytest.raises(WrapperLeakError, match="torch.autograd.grad"):
        transform(x.send(bob))


def test_a_remote_module_can_be_pruned(bob: Any, x: Any) -> None:
    model = net()
    remote = copy.deepcopy(model).send(bob)

    for module, data in ((model, x), (remote, x.send(bob))):
        prune.l1_unstructured(module[0], "weight", amount=0.4)
        prune.ln_structured(module[2], "weight", amount=1, n=2, dim=0)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        module(data).sum().backward()
        optimizer.step()
        prune.remove(module[0], "weight")

    assert same_state(model, remote.get())


def test_parametrized_weights_are_computed_on_the_worker(bob: Any, x: Any) -> None:
    model = net()
    parametrizations.weight_norm(model[0])
    remote = copy.deepcopy(model).send(bob)

    for module, data in ((model, x), (remote, x.send(bob))):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        module(data).sum().backward()
        optimizer.step()

    assert same_state(model, remote.get())


@pytest.mark.parametrize("options", [{}, {"multi_avg_fn": get_ema_multi_avg_fn(0.9)}, {"use_buffers": True}])
def test_weights_are_averaged_on_the_worker(options: Any, bob: Any, x: Any) -> None:
    model = nn.Sequential(net(), nn.BatchNorm1d(2))
    remote = copy.deepcopy(model).send(bob)

    averages = []
    for module, data in ((model, x), (remote, x.send(bob))):
        average = AveragedModel(module, **options)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            module(data).square().sum().backward()
            optimizer.step()
            average.update_parameters(module)
        averages.append(average)
        assert average(data).shape == (3, 2)

    assert same_state(averages[0].module, averages[1].module.get())


class SignDescent(torch.optim.Optimizer):
    """A third-party optimizer with its own setup."""

    def __init__(self, params: Any, lr: float) -> None:
        self.param_groups = [{"params": list(params), "lr": lr}]
        self.state: dict[Any, Any] = {}
        self.defaults = {"lr": lr}

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state.setdefault(parameter, {"momentum": torch.zeros_like(parameter)})
                state["momentum"].mul_(0.9).add_(parameter.grad.sign())
                parameter.add_(state["momentum"], alpha=-group["lr"])


class Lookahead(torch.optim.Optimizer):
    """An optimizer that wraps another one, with hooks for steps, but not for its state."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self._optimizer_step_pre_hooks: dict[int, Any] = {}
        self._optimizer_step_post_hooks: dict[int, Any] = {}
        self.param_groups, self.state, self.defaults = optimizer.param_groups, optimizer.state, optimizer.defaults
        self.slow = [[p.clone().detach() for p in group["params"]] for group in self.param_groups]

    def step(self, closure: Any = None) -> None:
        self.optimizer.step()
        for group, slow in zip(self.param_groups, self.slow, strict=True):
            for parameter, kept in zip(group["params"], slow, strict=True):
                kept.add_(parameter.data - kept, alpha=0.5)
                parameter.data.copy_(kept)


@pytest.mark.parametrize("make", [lambda p: SignDescent(p, 0.1), lambda p: Lookahead(torch.optim.Adam(p, 0.1))])
def test_third_party_optimizers_step_as_locally(make: Any, bob: Any, x: Any) -> None:
    model = net()
    remote = copy.deepcopy(model).send(bob)

    for module, data in ((model, x), (remote, x.send(bob))):
        optimizer = make(module.parameters())
        for _ in range(3):
            for parameter in module.parameters():
                parameter.grad = None
            module(data).square().sum().backward()
            optimizer.step()

    assert same_state(model, remote.get())


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_compiled_module_runs_uncompiled_on_remote_data(backend: str, bob: Any, x: Any) -> None:
    model = net()
    compiled = torch.compile(copy.deepcopy(model).send(bob), backend=backend)

    compiled(x.send(bob)).sum().backward()
    model(x).sum().backward()

    assert torch.equal(compiled(x.send(bob)).get(), model(x).detach())
    assert torch.equal(compiled._orig_mod[0].weight.grad.copy().get(), model[0].weight.grad)


def test_a_compiled_function_runs_uncompiled_on_remote_data(bob: Any, x: Any) -> None:
    compiled = torch.compile(lambda x: (x * 2).sin().sum(), backend="eager")

    assert torch.equal(compiled(x.send(bob)).get(), (x * 2).sin().sum())
    assert torch.equal(compiled(x), (x * 2).sin().sum())


def test_a_module_compiled_in_place_runs_uncompiled_while_it_is_remote(bob: Any, x: Any) -> None:
    model = net()
    expected = model(x).detach()
    model.compile(backend="eager")
    call = model._compiled_call_impl

    found = model.send(bob)(x.send(bob))

    assert torch.equal(found.get(), expected)
    assert model.get()._compiled_call_impl is call
