"""What beginners get wrong: the error names the cause, and every line that it advises works when it is pasted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.exceptions import (
    AlreadyRetrievedError,
    NotCollocatedError,
    NotTheFrameworkError,
    ObjectNotFoundError,
    PolicyError,
    SendNotPermittedError,
    TooManyHopsError,
    ValueRefusedError,
    WorkerError,
    WorkerIdTakenError,
    WorkerNotFoundError,
    WorkerNotPicklableError,
    WrapperLeakError,
    WriteNotPermittedError,
)
from syft_worker.desk.errors import ReleaseError
from tests.mistakes.conftest import notebook

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("UserWarning", "DeprecationWarning", "FutureWarning")
]

REVEALS = "it would implicitly reveal a value from 'bob'; fetch it first: `p.get()`"
HERE_AND_THERE = "its arguments live on 'bob' and in this process; send the local one: `y = y.send('bob')`"
APART = "its arguments live on 'bob' and 'alice'; move the first one, e.g. `p = p.move('alice')`"
UNKNOWN = "cannot find worker 'bobb': no worker here has this id; did you mean 'bob'?"
SPENT = "it was fetched by 'me'; use the result of that call, or next time fetch a copy: `p.copy().get()`"
NO_WORKER = "cannot find a worker: expected a worker or its id, got {}; write `x.send(bob)`"
TRAINED = "model = nn.Sequential(model).send(bob); model(p).sum().backward()"
FETCH_ARRAY = "it would implicitly reveal a value from 'bob'; fetch it first: `p = p.get().numpy()`"
SKIP = "or skip the check: `torch.distributions.Distribution.set_default_validate_args(False)`"
USER = "sy.local_worker.user = 'me'"
NOT_PICKLED = "cannot pickle or copy the worker 'bob': it belongs to this process; use its id, or connect to it"
UNSAVED = "cannot save or pickle a pointer: its data is on 'bob'; fetch it first: `p = p.get()`, or `model.get()`"


@dataclass(frozen=True)
class Mistake:
    """One line of a beginner's, the error that it raises, and a part of its text."""

    line: str
    error: type[Exception]
    says: str
    setup: str = ""
    fixed_by_advice: bool = True
    """Whether the line works after each line that the error advises; otherwise the advice alone must work."""
    advice: bool = True
    """Whether the text advises a line at all."""


VALUES = [
    Mistake('f"{p:.3f}"', ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake('"{:.2e}".format(p)', ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake('"%.3f" % p', ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("round(p, 3)", ValueRefusedError, REVEALS, "p = p.sum()", fixed_by_advice=False),
    Mistake("float(p)", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("int(p)", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("bool(p)", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("complex(p)", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("p.item()", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("p.tolist()", ValueRefusedError, REVEALS),
    Mistake("p.numpy()", ValueRefusedError, REVEALS),
    Mistake("p.detach().cpu().numpy()", ValueRefusedError, REVEALS),
    Mistake("np.asarray(p)", ValueRefusedError, REVEALS),
    Mistake("np.exp(p)", ValueRefusedError, REVEALS),
    Mistake("np.array([p, p])", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("math.sqrt(p)", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("range(p)", ValueRefusedError, REVEALS, "p = p.sum().long()"),
    Mistake("[1, 2, 3, 4, 5, 6, 7][p]", ValueRefusedError, REVEALS, "p = p.sum().long()"),
    Mistake("1 if p < 10 else 2", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("p < 10 and p > 1", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("not p", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("p in [1, 2]", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("max(p)", ValueRefusedError, REVEALS),
    Mistake("min(p)", ValueRefusedError, REVEALS),
    Mistake("sorted(p)", ValueRefusedError, REVEALS),
    Mistake("any(p)", ValueRefusedError, REVEALS),
    Mistake("torch.tensor([p, p])", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("torch.equal(p, p)", ValueRefusedError, REVEALS),
    Mistake("torch.allclose(p, p)", ValueRefusedError, REVEALS),
    Mistake("(p.round() == p).sum().item()", ValueRefusedError, REVEALS),
    Mistake("p.data_ptr()", ValueRefusedError, REVEALS),
    Mistake("p.storage()", ValueRefusedError, REVEALS),
    Mistake("assert p > 0", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("while p < 0: pass", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("min(float('inf'), p)", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("for i in range(int(p)): pass", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("(p - p).abs().max() < 1e-3 or 1", ValueRefusedError, REVEALS),
    Mistake("sum([p, p]) / 2 > 1 and 1", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("str(float(p))", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("{'loss': p}['loss'].item()", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("p.sort().values[0].item()", ValueRefusedError, REVEALS),
    Mistake("p.unique().tolist()", ValueRefusedError, REVEALS),
    Mistake("p.nonzero().tolist()", ValueRefusedError, REVEALS),
    Mistake("p.argmax().item()", ValueRefusedError, REVEALS),
    Mistake("np.mean([p, p])", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("np.save(io.BytesIO(), p)", ValueRefusedError, FETCH_ARRAY),
    Mistake(
        "np.sum(p)",
        ValueRefusedError,
        "use `torch.sum(p)`, or fetch it first: `p = p.get().numpy()`",
        fixed_by_advice=False,
    ),
    Mistake("np.mean(p)", ValueRefusedError, "use `torch.mean(p)`, or fetch", fixed_by_advice=False),
    Mistake("np.max(p)", ValueRefusedError, "use `torch.max(p)`, or fetch", fixed_by_advice=False),
    Mistake("np.std(p, axis=0)", ValueRefusedError, "use `torch.std(p, correction=0)`, or", fixed_by_advice=False),
    Mistake("np.median(p)", ValueRefusedError, "use `torch.quantile(p, 0.5)`, or fetch", fixed_by_advice=False),
    Mistake("np.percentile(p, 50)", ValueRefusedError, FETCH_ARRAY),
    Mistake("np.dot(p, p)", ValueRefusedError, "use torch.dot with the same arguments, or fetch it first"),
    Mistake("np.concatenate([p, p])", ValueRefusedError, "use torch.concatenate with the same arguments, or fetch"),
    Mistake("torch.full((3,), p)", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("torch.arange(p)", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("torch.distributions.Gamma(p, p).log_prob(p)", ValueRefusedError, SKIP),
    Mistake("torch.distributions.Normal(p, p).log_prob(p)", ValueRefusedError, SKIP),
    Mistake("torch.distributions.Categorical(logits=p).sample()", ValueRefusedError, SKIP),
    Mistake("torch.distributions.Dirichlet(p).log_prob(p / p.sum())", ValueRefusedError, SKIP),
    Mistake("torch.distributions.Poisson(p).log_prob(p)", ValueRefusedError, SKIP),
    Mistake("np.testing.assert_allclose(p, p)", ValueRefusedError, REVEALS),
    Mistake("torch.FloatTensor([p, p])", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("'x' * p", ValueRefusedError, REVEALS, "p = p.sum().long()"),
    Mistake("math.isnan(p)", ValueRefusedError, REVEALS, "p = p.sum()"),
    Mistake("torch.optim.SGD(model.parameters(), lr=p)", ValueRefusedError, REVEALS, "p = p.sum()"),
]
PLACES = [
    Mistake("p + y", NotCollocatedError, HERE_AND_THERE),
    Mistake("y + p", NotCollocatedError, HERE_AND_THERE),
    Mistake("(p == y).float().mean()", NotCollocatedError, HERE_AND_THERE),
    Mistake("p.add_(y)", NotCollocatedError, HERE_AND_THERE),
    Mistake("torch.stack([p, y])", NotCollocatedError, HERE_AND_THERE),
    Mistake("nn.functional.mse_loss(p, y)", NotCollocatedError, HERE_AND_THERE),
    Mistake("model(y)", NotCollocatedError, HERE_AND_THERE, "model.send(bob)"),
    Mistake("model(p)", NotCollocatedError, "send the model: `model.send('bob')`"),
    Mistake("p + q", NotCollocatedError, APART),
    Mistake("p == q", NotCollocatedError, APART),
    Mistake("torch.cat([p, q])", NotCollocatedError, APART),
    Mistake("sum([p, q])", NotCollocatedError, APART),
    Mistake("model(p)", NotCollocatedError, APART, "model.send(alice)"),
    Mistake("y.copy_(p)", NotCollocatedError, "by writing it into a local tensor; fetch it first: `p = p.get()`"),
    Mistake("y[0] = p[0]", NotCollocatedError, "by writing it into a local tensor; fetch it first: `p = p.get()`"),
    Mistake("y[p > 1]", NotCollocatedError, HERE_AND_THERE),
    Mistake("y.gather(0, p.long() - 1)", NotCollocatedError, HERE_AND_THERE),
    Mistake("nn.functional.mse_loss(model(p), y[:1])", NotCollocatedError, HERE_AND_THERE, "model.send(bob)"),
    Mistake("nn.CrossEntropyLoss(weight=y)(p[None], p[:1].long())", NotCollocatedError, HERE_AND_THERE),
    Mistake("model.weight.data = y", NotCollocatedError, HERE_AND_THERE, "model.send(bob); y = y[None]"),
    Mistake("with torch.no_grad(): model.weight += y", NotCollocatedError, HERE_AND_THERE, "model.send(bob)"),
    Mistake("with bob: torch.zeros(3) + y", NotCollocatedError, HERE_AND_THERE),
    Mistake("y.send(bob, alice) + y", NotCollocatedError, "in this process; send the local one", "", False),
    Mistake(
        "model(p)",
        NotCollocatedError,
        "send the model: `model.send('bob')`",
        "model = nn.Sequential(model.send(bob), nn.Linear(1, 1))",
    ),
    Mistake(
        "torch.bernoulli(p / 3, generator=generator)",
        NotCollocatedError,
        "it would draw from a local generator, which worker 'bob' cannot advance",
        "generator = torch.Generator()",
    ),
    Mistake("p[q.long() - 1]", NotCollocatedError, APART, "q = q.clamp(max=3)"),
    Mistake("p + y", NotCollocatedError, "`y = torch.asarray(y).send('bob')`", "y = np.ones(3)"),
    Mistake("y * p", NotCollocatedError, "`y = torch.asarray(y).send('bob')`", "y = np.ones(3)"),
]
TRAVEL = [
    Mistake("y.send('bobb')", WorkerNotFoundError, UNKNOWN, fixed_by_advice=False),
    Mistake("p.move('bobb')", WorkerNotFoundError, UNKNOWN, fixed_by_advice=False),
    Mistake("model.send('bobb')", WorkerNotFoundError, UNKNOWN, fixed_by_advice=False),
    Mistake("y.send()", TypeError, "cannot send without a worker", fixed_by_advice=False, advice=False),
    Mistake("p.send(bob)", TooManyHopsError, "its data is there already; use the pointer", fixed_by_advice=False),
    Mistake("y.get()", TypeError, "it is not a pointer, its data is in this process; use it as it is", advice=False),
    Mistake(
        "y.move(bob)", TypeError, "it is not a pointer, its data is in this process; use it as it is", advice=False
    ),
    Mistake("p.get().get()", TypeError, "it is not a pointer, its data is in this process", advice=False),
    Mistake("p.get()", AlreadyRetrievedError, SPENT, "x = p.get()", fixed_by_advice=False, advice=False),
    Mistake("p + 1", AlreadyRetrievedError, SPENT, "x = p.get()", fixed_by_advice=False, advice=False),
    Mistake("p.shape", AlreadyRetrievedError, SPENT, "x = p.get()", fixed_by_advice=False, advice=False),
    Mistake("model.get()", WorkerError, "cannot get a Linear: it is in this process; use it as it is", advice=False),
    Mistake(
        "model.send(alice)", WorkerError, "it is on 'bob'; move it: `model.move('alice')`", "model.send(bob)", False
    ),
    Mistake("model.send(bob, alice)", WorkerError, "`models = [model.copy().send(worker)", fixed_by_advice=False),
    Mistake(
        "model(p)", AlreadyRetrievedError, "it was fetched by 'me'", "model.send(bob); model.weight.get()", False, False
    ),
    Mistake("bob.get_obj(7)", ObjectNotFoundError, "it was never stored there, or was deleted", advice=False),
    Mistake("y.send([bob, alice])", TypeError, NO_WORKER.format("list"), "x = y", False),
    Mistake("y.send(None)", TypeError, NO_WORKER.format("NoneType"), "x = y", False),
    Mistake("p.move(None)", TypeError, NO_WORKER.format("NoneType"), "x = y", False),
    Mistake("y.send(3)", WorkerNotFoundError, "cannot find worker 3: no worker here has this id", "", False),
    Mistake("p.tag(3)", TypeError, "cannot use this tag: expected a string, got int", "x = 3", False),
    Mistake("y.tag(p)", TypeError, "cannot use this tag: expected a string, got Wrapper", "x = 3", False),
    Mistake("p.describe(3)", TypeError, "cannot use this description: expected a string, got int", "x = 3", False),
    Mistake("p.get(reason=3)", TypeError, "cannot use this reason: expected a string, got int", "x = 3", False),
    Mistake("p.request(3)", TypeError, "cannot use this reason: expected a string, got int", "x = 3", False),
    Mistake(
        "model.get(reason=3)",
        TypeError,
        "cannot use this reason",
        "x = 3; model.send(bob)",
        fixed_by_advice=False,
    ),
    Mistake("model.request(3)", TypeError, "cannot use this reason", "x = 3; model.send(bob)", False),
    Mistake("p.private_tensor('me')", TypeError, "make the data private before it is sent", USER, False),
    Mistake("model.to(bob)", TypeError, "a worker is not a device; send it: `model.send('bob')`", "", False),
    Mistake("model.to(device=bob)", TypeError, "a worker is not a device; send it: `model.send('bob')`", "", False),
    Mistake(
        "model.send(bob)",
        WorkerError,
        "cannot send a Linear with torch.nn.utils.weight_norm: its weight is the result of an autograd graph; use "
        "the parametrization: `torch.nn.utils.parametrizations.weight_norm(torch.nn.utils.remove_weight_norm(layer))`",
        "layer = nn.utils.weight_norm(model)",
    ),
    Mistake("y.send(bob)", SendNotPermittedError, "send it as one of them", "y = y.private_tensor('ann')"),
    Mistake("bob.load_data('#ages')", TypeError, "cannot load a str: expected a list", fixed_by_advice=False),
    Mistake("bob.load_data({'ages': y})", TypeError, "cannot load a dict: expected a list", fixed_by_advice=False),
    Mistake("bob.remote.zeros(3)", AttributeError, "write `bob.remote.torch.zeros(3)`", fixed_by_advice=False),
    Mistake("bob.approve(7)", ReleaseError, "worker 'bob' has no such request", "worker = bob", False),
    Mistake("bob.load_data(y)", TypeError, "expected a list; write `bob.load_data([y])`", fixed_by_advice=False),
    Mistake(
        "p.add_(1)",
        WriteNotPermittedError,
        "change a copy instead, e.g. `p = p.copy()`",
        "bob.load_data([y.tag('#mine')]); p = bob.search('#mine')[0]",
    ),
]
SAVING = [
    Mistake("torch.save(p, io.BytesIO())", WrapperLeakError, UNSAVED, "model.send(bob)", fixed_by_advice=False),
    Mistake("pickle.dumps(p)", WrapperLeakError, UNSAVED, "model.send(bob)", fixed_by_advice=False),
    Mistake("torch.save(model, io.BytesIO())", WrapperLeakError, UNSAVED, "model.send(bob)", fixed_by_advice=False),
    Mistake(
        "torch.save(model.state_dict(), io.BytesIO())",
        WrapperLeakError,
        UNSAVED,
        "model.send(bob)",
        fixed_by_advice=False,
    ),
    Mistake("torch.save(model, io.BytesIO())", WrapperLeakError, UNSAVED, TRAINED, fixed_by_advice=False),
    Mistake("pickle.dumps(model)", WrapperLeakError, UNSAVED, TRAINED, fixed_by_advice=False),
    Mistake("torch.save([p, y], io.BytesIO())", WrapperLeakError, UNSAVED, "model.send(bob)", fixed_by_advice=False),
    Mistake(
        "torch.jit.script(model)",
        WrapperLeakError,
        "cannot run torch.jit.script on a wrapper: a wrapper holds no data of its own; fetch the model first: "
        "`model.get()`",
        "model.send(bob)",
    ),
    Mistake("pickle.dumps(bob)", WorkerNotPicklableError, NOT_PICKLED, "", False, False),
    Mistake("copy.deepcopy(bob)", WorkerNotPicklableError, NOT_PICKLED, "", False, False),
    Mistake("torch.save({'worker': bob}, io.BytesIO())", WorkerNotPicklableError, NOT_PICKLED, "", False, False),
    Mistake(
        "torch.func.jvp(torch.sin, (p,), (p,))",
        WrapperLeakError,
        "cannot use a transform of torch.func on a pointer or another layer: the operations run on a worker",
    ),
    Mistake(
        "torch.jit.trace(nn.ReLU(), p)",
        WrapperLeakError,
        "cannot use torch.jit.trace on a pointer or another layer",
        "model.send(bob)",
        fixed_by_advice=False,
    ),
    Mistake("torch.Tensor(p)", WrapperLeakError, "call a method of the tensor instead, e.g. `p.clone()`", "", False),
    Mistake("torch.tensor(p)", WrapperLeakError, "call a method of the tensor instead, e.g. `p.clone()`", "", False),
]
OPERATIONS = [
    Mistake(
        "p.apply_(math.sqrt)", ValueRefusedError, "it takes a function, and a worker does not run functions of others"
    ),
    Mistake("p.register_hook(print)", ValueRefusedError, "it takes a function", "p = (p.requires_grad_() * 1)", False),
    Mistake("p.share_memory_()", ValueRefusedError, "it works on memory of the process that holds the data"),
    Mistake(
        "(p.requires_grad_() * 2).grad_fn", ValueRefusedError, "it is an object of the process that holds the data"
    ),
    Mistake("torch.from_file(p)", TypeError, "from_file", "", False, False),
]
SETUP = [
    Mistake("sy.Torchhook(torch)", AttributeError, "did you mean `sy.TorchHook`?", "", False, False),
    Mistake("sy.TorchHook(np)", NotTheFrameworkError, "takes the torch module itself", "", False, False),
    Mistake("bob.policy = 'nothin'", PolicyError, "there is no such policy; use one of", "", False, False),
    Mistake(
        "with sy.revealing(''): p.sum().item()",
        ValueRefusedError,
        "the ledger of each worker records a reason",
        "",
        False,
    ),
    Mistake("sy.VirtualWorker(hook, 'carl', 'nothing')", TypeError, "cannot load a str", "carl = bob", False),
    Mistake("sy.TorchHook('torch')", NotTheFrameworkError, "takes the torch module itself", "", False, False),
    Mistake("sy.VirtualWorker('carl')", TypeError, "its first argument is the hook, not 'carl'", "", False),
    Mistake(
        "sy.VirtualWorker(hook, id='carl', policy='only_publishd')",
        PolicyError,
        "there is no such policy; use one of unless_private, only_published, nothing",
        "",
        False,
        False,
    ),
    Mistake(
        "sy.VirtualWorker(hook, id='bob', policy='nothing')",
        WorkerIdTakenError,
        "with another 'policy'",
        "",
        False,
        False,
    ),
]
MISTAKES = [*VALUES, *PLACES, *TRAVEL, *SAVING, *OPERATIONS, *SETUP]


def run(line: str, names: dict[str, Any]) -> Any:
    """Run a line as a notebook does: return the value of an expression."""
    try:
        code = compile(line, "<notebook>", "eval")
    except SyntaxError:
        exec(line, names)
        return None
    return eval(code, names)


def fail(mistake: Mistake, names: dict[str, Any]) -> str:
    """Make a mistake, and return what the error says."""
    exec(mistake.setup, names)
    with pytest.raises(mistake.error) as caught:
        run(mistake.line, names)
    return str(caught.value)


def find_advice(text: str) -> list[str]:
    """Return the lines of code in a text."""
    return re.findall(r"`([^`]*)`", text)


def describe(mistake: Mistake) -> str:
    return f"{mistake.setup}; {mistake.line}".removeprefix("; ")


@pytest.mark.parametrize("mistake", MISTAKES, ids=describe)
def test_a_mistake_is_explained_and_the_advice_works_when_pasted(mistake: Mistake, hook: Any) -> None:
    with notebook(hook) as names:
        text = fail(mistake, names)
    advised = find_advice(text)

    assert mistake.says in text
    assert "torch._" not in text
    assert advised or not mistake.advice
    for line in advised if mistake.advice else ():
        with notebook(hook) as names:
            fail(mistake, names)
            follow(line, mistake, names)


def follow(line: str, mistake: Mistake, names: dict[str, Any]) -> None:
    """Paste an advised line, and make the same call again if the advice is meant to fix it."""
    again = mistake.line if mistake.fixed_by_advice else "pass"
    if line.startswith("with "):
        run(f"{line}\n    {again}", names)
        return
    run(f"p = {line}" if line.startswith("p.") else line, names)
    run(again, names)


WORKS = {
    "len(p)": 3,
    "[float(x.get()) for x in p]": [1.0, 2.0, 3.0],
    "sum([p, p]).get().tolist()": [2.0, 4.0, 6.0],
    "copy.deepcopy(p).get().tolist()": [1.0, 2.0, 3.0],
    "p[y > 0].get().tolist()": [1.0, 2.0, 3.0],
    "p[[0, 1]].get().tolist()": [1.0, 2.0],
    "p[np.array([0, 2])].get().tolist()": [1.0, 3.0],
    "(p * np.float32(2)).get().tolist()": [2.0, 4.0, 6.0],
    "p.cpu().get().tolist()": [1.0, 2.0, 3.0],
    "p.data.get().tolist()": [1.0, 2.0, 3.0],
    "torch.where(p > 1, p, 0).get().tolist()": [0.0, 2.0, 3.0],
    "[x.get().tolist() for x, in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(p), 2)]": [
        [1.0, 2.0],
        [3.0],
    ],
    "bob.search('#nothing')": [],
    "f'{p.sum().get():.1f}'": "6.0",
}


@pytest.mark.parametrize("line", WORKS)
def test_a_line_that_looks_like_a_mistake_works(line: str, world: dict[str, Any]) -> None:
    assert run(line, world) == WORKS[line]


def test_an_optimizer_created_before_the_model_is_sent_trains_it(world: dict[str, Any]) -> None:
    model, before = world["model"], world["model"].weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    model.send("bob")
    model(world["p"]).sum().backward()
    optimizer.step()

    assert not torch.equal(model.get().weight, before)
