from __future__ import annotations

import importlib
import threading
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

import syft_core as sy
from syft_core.plans.capture import is_of_user
from syft_core.plans.errors import PlanError

from .sources import SOURCES, make_sources
from .test_training import OPTIMIZERS, Training, equal

torch = pytest.importorskip("torch")


def everything(training: Training) -> list[Any]:
    gradients = [parameter.grad for parameter in training.model.parameters()]
    missing = torch.tensor([gradient is None for gradient in gradients])
    states = [list(state.values()) for state in training.optimizer.state.values()]
    tensors = [*training.model.state_dict().values(), *[value for values in states for value in values]]
    return [*tensors, missing, *[gradient for gradient in gradients if gradient is not None]]


def test_a_variable_that_changes_is_refused_in_calls_and_recorded_when_the_plan_is_sent(hook: Any, bob: Any) -> None:
    factor = 2.0

    def scale(x: Any) -> Any:
        return x * factor

    plan = sy.Plan("scale", scale).build(torch.ones(2))
    there = plan.send(bob)
    factor = 3.0

    with pytest.raises(PlanError, match="'factor', a setting of its models or a variable that it reads, changed"):
        there(torch.ones(2))
    assert plan.send(bob)(torch.ones(2)).get().tolist() == [3.0, 3.0]


def test_what_the_functions_of_python_refer_to_is_no_part_of_a_plan(hook: Any, monkeypatch: Any) -> None:
    def handle(_args: Any) -> None:
        torch.manual_seed(0)

    monkeypatch.setattr(threading, "excepthook", handle)  # A new thread refers to it.
    thread = threading.Thread(target=print)

    plan = sy.Plan(None, lambda x: x * 2 if not thread.is_alive() else x).build(torch.ones(2))

    assert plan(torch.ones(2)).tolist() == [2.0, 2.0]


def test_an_attribute_with_the_name_of_a_variable_is_not_that_variable(hook: Any, bob: Any) -> None:
    training = Training(OPTIMIZERS["sgd"])
    space = {"training": training}
    exec("def run(x, y):\n    return training.step(x, y) * 1", space)
    there = sy.Plan("run", space["run"]).build(*training.data[0]).send(bob)
    for step, batch in enumerate(training.data):
        space["step"] = step
        there(*batch)


SCALE = 1.0


MASK = torch.ones(3)


OPTIONS: dict[str, Any] = {"factors": [1.0], "mask": torch.ones(3)}


class Slots:
    """An object without a dict."""

    __slots__ = ("factor",)


class Constants:
    """A class that is used without an object."""

    factor = 1.0
    factors: ClassVar[Any] = deque([1.0])


SLOTS = Slots()


def read_all(factors: Any = (1.0, [1.0])) -> Any:
    """Return a product of what containers, classes and slots hold."""
    numbers = OPTIONS["factors"][0] * SLOTS.factor * Constants.factor * Constants.factors[0] * factors[1][0]
    return numbers * OPTIONS["mask"]


class Scaled(torch.nn.Module):
    """A layer whose code reads variables of its module."""

    def forward(self, x: Any) -> Any:
        return x * SCALE * MASK * self.factor() * read_all() * self.common[0]

    def factor(self) -> float:
        return self.weight

    weight = 1.0
    common = (1.0,)


class Trainer(Training):
    """A class with settings of its own, of which a step uses some."""

    def __init__(self, make_optimizer: Any) -> None:
        super().__init__(make_optimizer)
        self.model.append(Scaled())
        self.rate, self.epoch, self.part = 1.0, 0, slice(0, 3)
        self.options = {"rate": [1.0]}

    def step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = self.find_loss(x, y)
        loss.backward()
        self.optimizer.step()
        return loss

    def find_loss(self, x: Any, y: Any) -> Any:
        return self.rate * self.options["rate"][0] * torch.nn.functional.cross_entropy(self.model(x), y)

    def log(self) -> int:
        return self.epoch


def set_global(_training: Any) -> None:
    globals()["SCALE"] = 0.5


def set_mask(_training: Any) -> None:
    globals()["MASK"] = torch.tensor([1.0, 0.0, 1.0])


SETTINGS: dict[str, Any] = {
    "attribute that a method reads": lambda training: setattr(training, "rate", 0.5),
    "attribute of a layer": lambda training: setattr(training.model[-1], "weight", 0.25),
    "variable that a layer reads": set_global,
    "tensor that a layer reads": set_mask,
    "requires_grad": lambda training: training.model[0].weight.requires_grad_(False),
    "parameters of a group": lambda training: training.optimizer.param_groups[0]["params"].pop(),
    "number in an attribute": lambda training: training.options["rate"].__setitem__(0, 0.5),
    "number in a variable": lambda _training: OPTIONS["factors"].__setitem__(0, 0.5),
    "slot": lambda _training: setattr(SLOTS, "factor", 0.5),
    "attribute of a class": lambda _training: setattr(Constants, "factor", 0.5),
    "number in an attribute of a class": lambda _training: Constants.factors.__setitem__(0, 0.5),
    "attribute of the class of a layer": lambda _training: setattr(Scaled, "common", (0.5,)),
    "number in a default": lambda _training: read_all.__defaults__[0][1].__setitem__(0, 0.5),  # type: ignore[index]
    "hook of a layer": lambda training: training.model[0].register_forward_hook(lambda *args: args[-1] * 2),
}


@pytest.fixture
def module_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCALE", "MASK"):
        monkeypatch.setattr(__name__ + "." + name, globals()[name])
    monkeypatch.setattr(Scaled, "common", (1.0,))
    monkeypatch.setattr(Constants, "factor", 1.0)
    monkeypatch.setattr(Constants, "factors", deque([1.0]))
    monkeypatch.setattr(read_all, "__defaults__", ((1.0, [1.0]),))
    OPTIONS.update(factors=[1.0], mask=torch.ones(3))
    SLOTS.factor = 1.0


@pytest.mark.usefixtures("module_variables")
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_is_recorded_again_when_sent_and_refused_in_calls(bob: Any, setting: str) -> None:
    remote, local = Trainer(OPTIMIZERS["momentum"]), Trainer(OPTIMIZERS["momentum"])
    plan = sy.Plan("step", remote.step).build(*remote.data[0])
    there = plan.send(bob)
    there(*remote.data[0])
    local.step(*local.data[0])
    remote.epoch = 5  # No step reads it.
    there(*remote.data[1])
    local.step(*local.data[1])
    there.get()
    again = plan.send(bob)

    SETTINGS[setting](remote), SETTINGS[setting](local)

    with pytest.raises(PlanError, match="changed after it was recorded"):
        again(*remote.data[2])
    there = plan.send(bob)
    there(*remote.data[2])
    local.step(*local.data[2])
    there.get()
    assert equal(everything(remote), everything(local))


def test_a_tensor_that_was_replaced_in_a_container_is_sent_with_a_plan(hook: Any, bob: Any) -> None:
    options = {"masks": [torch.zeros(2)]}
    plan = sy.Plan("mask", lambda x: x * options["masks"][0]).build(torch.ones(2))

    options["masks"][0] = torch.tensor([0.0, 3.0])

    assert plan.send(bob)(torch.ones(2)).get().tolist() == [0.0, 3.0]


def test_an_array_whose_numbers_are_constants_is_read_again_when_a_plan_is_sent(hook: Any, bob: Any) -> None:
    numpy = pytest.importorskip("numpy")
    factors = numpy.array([2.0])
    plan = sy.Plan("scale", lambda x: x * float(factors[0])).build(torch.ones(2))

    factors[0] = 5.0

    assert plan.send(bob)(torch.ones(2)).get().tolist() == [5.0, 5.0]


def test_a_partial_function_and_its_arguments_are_recorded(hook: Any, bob: Any) -> None:
    model = torch.nn.Linear(2, 1)

    def run(model: Any, x: Any) -> Any:
        return model(x)

    plan = sy.Plan("run", partial(run, model)).build(torch.ones(1, 2))
    there = plan.send(bob)
    assert len(plan.parameters()) == 2
    assert torch.equal(there(torch.ones(1, 2)).get(), model(torch.ones(1, 2)))


@pytest.mark.parametrize("name", SOURCES)
def test_whatever_a_function_reads_is_refused_in_calls_when_it_changes(hook: Any, bob: Any, name: str) -> None:
    read, change = make_sources()[name]
    plan, x = sy.Plan("scale", lambda x: x * read()).build(torch.ones(3)), torch.ones(3)
    there = plan.send(bob)
    assert torch.equal(there(x).get(), x * read())

    change()

    with pytest.raises(PlanError, match="a setting of its models or a variable that it reads, changed"):
        there(x)
    there.get()
    answer = plan.send(bob)(x).get()
    assert torch.equal(answer, x * read())
    assert not torch.equal(answer, x)


def test_a_tensor_of_a_class_is_state(hook: Any, bob: Any) -> None:
    class Registry:
        total = torch.zeros(2)

        @classmethod
        def add(cls, x: Any) -> Any:
            return cls.total.add_(x)

    there = sy.Plan("add", lambda x: Registry.add(x) * 1).build(torch.ones(2)).send(bob)
    there(torch.ones(2)), there(torch.ones(2)).get()
    there.get()

    assert Registry.total.tolist() == [2.0, 2.0]


def test_packages_in_any_folder_of_the_search_path_are_not_searched(
    hook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("packages", "own"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"in_{folder}.py").write_text("factor = 2.0\n")
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    (tmp_path / "packages" / "in_packages-1.0.dist-info").mkdir()

    found = [is_of_user(importlib.import_module(name)) for name in ("in_packages", "in_own")]

    assert found == [False, True]
