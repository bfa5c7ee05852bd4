"""Threads: a worker executes one message at a time, and clients on several threads do not disturb each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import OperationNotAllowedError  # noqa: E402
from syft_core.messages import Run  # noqa: E402
from syft_core.workers.addresses.loopback import LoopbackLocation  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402


def at_once(*programs: Callable[[], Any]) -> list[Any]:
    """Run programs on a thread each, started together; return what they return, or raise what one raises."""
    results: list[Any] = [None] * len(programs)
    errors: list[BaseException] = []
    start = threading.Barrier(len(programs))

    def run(number: int, program: Callable[[], Any]) -> None:
        try:
            start.wait(30)
            results[number] = program()
        except BaseException as error:  # noqa: BLE001  # it is raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number, program)) for number, program in enumerate(programs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    if errors:
        raise errors[0]
    return results


def train(model: Any, data: Any, target: Any, steps: int = 30) -> list[Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(data), target).backward()
        optimizer.step()
    return [parameter.tolist() for parameter in (model.get() if model.location else model).parameters()]


def test_threads_that_train_on_one_worker_get_bit_equal_results(bob: Any) -> None:
    data, target = torch.rand(16, 4), torch.rand(16, 1)
    models = [torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)) for _ in range(4)]
    expected = [train(model.copy(), data, target) for model in models]
    x, y = data.send(bob), target.send(bob)

    found = at_once(*[lambda model=model: train(model.send(bob), x, y) for model in models])

    assert found == expected


def test_threads_that_use_one_object_lose_nothing(bob: Any) -> None:
    total = torch.zeros(1).send(bob)

    def count() -> None:
        for _ in range(300):
            total.add_(1)
            (total * 2).shape  # noqa: B018  # makes and drops an object

    at_once(count, count, count, count)

    assert total.get().tolist() == [1200.0]
    assert bob.objects_count == 0


def test_workers_that_send_to_each_other_do_not_deadlock(bob: Any, alice: Any) -> None:
    def to_and_fro(here: Any, there: Any) -> Any:
        x = torch.ones(4).send(here)
        for _ in range(100):
            x = x.move(there).move(here)
        return x.get().tolist()

    found = at_once(*[lambda: to_and_fro(bob, alice), lambda: to_and_fro(alice, bob)] * 2)

    assert found == [[1.0] * 4] * 4


def test_operations_on_pointers_to_pointers_do_not_deadlock(bob: Any, alice: Any) -> None:
    def compute(here: Any, there: Any) -> Any:
        x = torch.ones(2).send(there).send(here)
        for _ in range(100):
            x = x + 1
        return x.get().get().tolist()

    found = at_once(*[lambda: compute(bob, alice), lambda: compute(alice, bob)] * 2)

    assert found == [[101.0, 101.0]] * 4


def test_grad_mode_and_default_dtype_of_a_command_stay_in_its_thread(hook: Any, me: Any) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=True)
    w = torch.ones(2, requires_grad=True).send(bob)
    whole = torch.tensor([1, 2]).send(bob)
    location = me.location_of(bob)
    seen = set()

    def disturb() -> None:
        for number in range(300):
            location.worker.handle(_run("torch.Tensor.mul", w, 100 + number), me.peer)
            with pytest.raises(OperationNotAllowedError, match="default dtype"):
                location.worker.handle(_run("torch.Tensor.div", whole, 500 + number), me.peer)

    def look() -> None:
        for _ in range(3000):
            seen.add((torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()))

    at_once(disturb, look)

    assert seen == {(True, False, torch.float32)}


def _run(op: str, pointer: Any, result: int) -> Run:
    return Run("torch", op, (pointer.child, 2), None, result, "False False torch.float64 None")


class PausingLocation(LoopbackLocation):
    """Pauses between reading a failure and raising it, so that other threads can run."""

    def _decode(self, *reply: Any) -> Any:
        value = super()._decode(*reply)
        if reply[-1]:
            time.sleep(0.2)
        return value


class PausingWorker(VirtualWorker):
    def make_location(self, client: Any) -> Any:
        return PausingLocation(client, self)


def test_an_error_is_raised_in_the_thread_that_caused_it(hook: Any) -> None:
    x = torch.ones(2).send(PausingWorker(hook, id="pausing"))

    def fail() -> None:
        with pytest.raises(RuntimeError, match="invalid for input of size 2"):
            x.reshape(77)

    def work() -> list[Any]:
        end = time.monotonic() + 0.4
        results = []
        while time.monotonic() < end:
            results.append((x + 1).get().tolist())
        return results

    _, results = at_once(fail, work)

    assert all(result == [2.0, 2.0] for result in results)
