"""TransportConformance: the contract of a transport, as tests.

A transport is a ``Location`` on the client's side, and code that calls ``worker.deliver(frames, peer)`` on the worker's
side. Subclass the suite and implement ``start_worker``::

    class TestMyTransport(TransportConformance):
        framework = my_framework
        hook_class = MyHook

        @classmethod
        @contextmanager
        def start_worker(cls, hook, near, eve):
            with my_server(id="far") as server:
                clients = hook.local_worker, near, eve
                locations = [server.connect(client) for client in clients]
                for client, location in zip(clients, locations):
                    client.add_worker(location)
                yield locations[0], locations[2]

The worker is called "far"; ``equip`` gives it the objects that the tests need.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import pytest

from syft_core.exceptions import GetNotPermittedError, ObjectNotFoundError, WorkerNotFoundError
from syft_core.hook.hook import FrameworkHook
from syft_core.location import Location
from syft_core.messages import Fetch
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.pointers.travel import get_all
from syft_core.values import Tensor
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.virtual import VirtualWorker

SECRET = [86753.0, 1.0]


def equip(worker: BaseWorker, hook: FrameworkHook) -> None:
    """Give a worker the objects that the suite needs: a count of its objects, and data private to "owner"."""
    secret = _tensor(hook, SECRET).private_tensor(["owner"]).tag("#secret")
    worker.load_data([ObjectWrapper(lambda: worker.objects_count, tags={"#count"}), secret])


class World(NamedTuple):
    """The remote worker as two clients see it, and an in-process worker that it can reach."""

    hook: FrameworkHook
    far: Location
    near: VirtualWorker
    eve: VirtualWorker
    far_of_eve: Location


class TransportConformance:
    """Test everything that pointers, optimizers and data owners rely on, over one transport."""

    framework: ClassVar[Any]
    hook_class: ClassVar[type[FrameworkHook]]

    @classmethod
    def start_worker(
        cls, hook: FrameworkHook, near: VirtualWorker, eve: VirtualWorker
    ) -> AbstractContextManager[tuple[Location, Location]]:
        """Start a worker called "far" that knows ``near``; yield the locations of the local worker and of ``eve``."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def world(cls) -> Iterator[World]:
        with cls.hook_class(cls.framework) as hook:
            hook.attributes.warm_up()
            near, eve = (VirtualWorker(hook, id=name, serialize=False) for name in ("near", "eve"))
            eve.user = "eve"
            with cls.start_worker(hook, near, eve) as (far, far_of_eve):
                yield World(hook, far, near, eve, far_of_eve)

    # --- arithmetic, forms, names

    def test_operations_run_remotely_and_results_can_be_fetched(self, world: World) -> None:
        x = _tensor(world.hook, [1.0, 2.0, 3.0]).send(world.far)

        result = (x + x) * 2 - x

        assert tuple(result.shape) == (3,)
        assert result.get().tolist() == [3.0, 6.0, 9.0]
        assert x.get().tolist() == [1.0, 2.0, 3.0]

    def test_a_worker_is_found_by_its_name(self, world: World) -> None:
        x = _tensor(world.hook, [1.0]).send("far")

        assert x.location.id == "far"
        assert x.get().tolist() == [1.0]

    def test_a_shape_that_changes_in_place_is_known(self, world: World) -> None:
        x = _tensor(world.hook, [1.0, 2.0]).send(world.far)
        if not hasattr(x, "unsqueeze_"):
            pytest.skip("the framework has no in-place operations that change shapes")

        assert tuple(x.unsqueeze_(0).shape) == (1, 2)
        assert tuple((x + 1).shape) == (1, 2)
        assert x.get().tolist() == [[1.0, 2.0]]

    def test_many_commands_are_executed_in_order(self, world: World) -> None:
        x = _tensor(world.hook, [0.0]).send(world.far)

        for _ in range(3000):
            x += 1

        assert x.get().tolist() == [3000.0]

    def test_a_tensor_may_be_changed_right_after_sending(self, world: World) -> None:
        plain = _tensor(world.hook, [1.0] * 1000)

        pointers = []
        for _ in range(20):
            pointers.append(plain.send(world.far))
            plain += 1

        assert [pointer.get().tolist()[0] for pointer in pointers] == [float(n) for n in range(1, 21)]

    def test_objects_are_found_by_their_tags(self, world: World) -> None:
        x = _tensor(world.hook, [5.0]).send(world.far).tag("#five")

        (found,) = world.hook.local_worker.request_search("#five", world.far)

        assert found.get().tolist() == [5.0]
        del x

    # --- lifetime

    def test_dropped_results_are_freed(self, world: World) -> None:
        x = _tensor(world.hook, [1.0]).send(world.far)
        gc.collect()
        before = _count(world)

        kept = [x + n for n in range(200)]
        assert _count(world) == before + 200
        del kept
        gc.collect()

        assert _count(world) == before
        assert x.get().tolist() == [1.0]

    def test_a_release_does_not_overtake_earlier_commands(self, world: World) -> None:
        for _ in range(3):
            x = _tensor(world.hook, [7.0]).send(world.far)
            x + 1
            second = type(x)(x.child.clone())
            del x
            assert second.get().tolist() == [7.0]
            _tensor(world.hook, [8.0]).send(world.far).tag("#kept").publish()
        world.far.flush()

        found = world.hook.local_worker.request_search("#kept", world.far)
        assert [pointer.copy().get().tolist() for pointer in found] == [[8.0]] * 3

    # --- failures

    def test_an_error_keeps_its_type_and_the_remote_traceback(self, world: World) -> None:
        with pytest.raises(ObjectNotFoundError, match="cannot find object 404 on worker 'far'") as caught:
            world.far.ask(Fetch(404))

        if world.far.predicts:
            assert "on worker 'far'" in _notes(caught.value)
            assert "syft_core.workers.moving.fetching, line" in _notes(caught.value)

    def test_the_first_failure_is_raised_with_its_line_and_later_commands_are_skipped(self, world: World) -> None:
        index, wrong = [0, 0], [0, 9]
        x, total = (_tensor(world.hook, [1.0, 2.0]).send(world.far) for _ in range(2))
        good, bad = (_tensor(world.hook, [float(n) for n in places]) for places in (index, wrong))
        if not hasattr(x, "index_select"):
            pytest.skip("the framework has no `index_select`")
        right, bad = good.long().send(world.far), bad.long().send(world.far)
        before = x.index_select(0, right)
        with pytest.raises((IndexError, RuntimeError), match="out of range") as caught:
            _fail_and_go_on(x, bad, total, world.far)

        if world.far.predicts and world.far.face is world.far:
            assert "index_select was issued by" in _notes(caught.value)
        assert total.get().tolist() == [1.0, 2.0]
        assert before.get().tolist() == [1.0, 1.0]
        assert x.get().tolist() == [1.0, 2.0]

    def test_the_result_of_a_failed_command_raises_the_failure(self, world: World) -> None:
        x, bad = _tensor(world.hook, [1.0, 2.0]).send(world.far), _tensor(world.hook, [9.0])
        if not hasattr(x, "index_select") or world.far.face is not world.far:
            pytest.skip("failures are raised at once")
        result = x.index_select(0, bad.long().send(world.far))
        with pytest.raises((IndexError, RuntimeError), match="out of range"):
            world.far.flush()

        with pytest.raises((IndexError, RuntimeError), match="out of range"):
            result.get()
        assert (x + 1).get().tolist() == [2.0, 3.0]

    # --- several requests at the same time

    def test_several_objects_are_fetched_together(self, world: World) -> None:
        x, y = _tensor(world.hook, [1.0, 2.0]).send(world.far), _tensor(world.hook, [3.0]).send(world.near)

        fetched = get_all(x + 1, y, x)

        assert [value.tolist() for value in fetched] == [[2.0, 3.0], [3.0], [1.0, 2.0]]

    def test_the_answers_to_submitted_requests_do_not_depend_on_each_other(self, world: World) -> None:
        x, y = (_tensor(world.hook, values).send(world.far) for values in ([1.0], [2.0]))
        gone = x + 1
        gone.get()
        requests = [Fetch(pointer.id_at_location) for pointer in (x, gone, y)]

        first, second, third = [world.far.submit(request) for request in requests]

        assert third().tolist() == [2.0]
        with pytest.raises(ObjectNotFoundError):
            second()
        assert first().tolist() == [1.0]
        assert (_tensor(world.hook, [1.0]).send(world.far) + 1).get().tolist() == [2.0]

    # --- training

    @pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
    def test_remote_training_gives_the_same_bits_as_local_training(self, world: World, optimizer: str) -> None:
        if not hasattr(self.framework, "nn"):
            pytest.skip("the framework does not train")
        framework = self.framework
        framework.manual_seed(0)
        local = framework.nn.Sequential(framework.nn.Linear(4, 3), framework.nn.Tanh(), framework.nn.Linear(3, 1))
        remote = local.copy()
        data, target = framework.rand(8, 4), framework.rand(8, 1)
        expected = _train(framework, local, optimizer, data, target)

        loss = _train(framework, remote.send(world.far), optimizer, data.send(world.far), target.send(world.far))

        assert loss.get().tolist() == expected.tolist()
        remote.get()
        for one, other in zip(local.parameters(), remote.parameters(), strict=True):
            assert one.tolist() == other.tolist()

    # --- other workers and clients

    def test_objects_move_in_both_directions(self, world: World) -> None:
        x = _tensor(world.hook, [1.0, 2.0]).send(world.far)

        at_near = (x + 1).move(world.near)
        assert world.near.get_obj(at_near.id_at_location).tolist() == [2.0, 3.0]
        back = (at_near * 2).move(world.far)

        assert (back + x).get().tolist() == [5.0, 8.0]

    def test_an_unknown_worker_is_refused(self, world: World) -> None:
        with pytest.raises(WorkerNotFoundError, match="cannot find worker 'nobody'"):
            _tensor(world.hook, [1.0]).send(world.far).move("nobody")

    def test_two_clients_have_independent_results(self, world: World) -> None:
        mine = _tensor(world.hook, [1.0]).send(world.far).tag("#shared")
        world.far.flush()
        (theirs,) = world.eve.request_search("#shared", world.far_of_eve)

        result, other = mine + 1, theirs + 2
        del theirs
        gc.collect()

        assert (result.get().tolist(), other.get().tolist()) == ([2.0], [3.0])
        assert mine.get().tolist() == [1.0]

    def test_a_client_notices_changes_by_another(self, world: World) -> None:
        mine = _tensor(world.hook, [1.0, 2.0]).send(world.far).tag("#form")
        if not hasattr(mine, "unsqueeze_"):
            pytest.skip("the framework has no in-place operations that change shapes")
        world.far.flush()
        (theirs,) = world.eve.request_search("#form", world.far_of_eve)
        assert tuple(mine.unsqueeze_(0).shape) == (1, 2)
        world.far.flush()
        world.far_of_eve.flush()

        assert tuple(theirs.shape) == (1, 2)

    def test_a_failure_of_one_client_does_not_affect_another(self, world: World) -> None:
        x = _tensor(world.hook, [1.0]).send(world.far)

        with pytest.raises(ObjectNotFoundError):
            world.far_of_eve.ask(Fetch(404))

        assert (x + 1).get().tolist() == [2.0]

    # --- private data

    def test_private_data_cannot_be_fetched_or_moved(self, world: World) -> None:
        (secret,) = world.hook.local_worker.request_search("#secret", world.far)

        for attempt in (secret, secret * 1, (secret + 1).sum()):
            with pytest.raises(GetNotPermittedError):
                attempt.copy().get()
        with pytest.raises(GetNotPermittedError, match="a claimed user name is not authentication"):
            secret.copy().get(user="owner")
        with pytest.raises(GetNotPermittedError):
            (secret * 1).move(world.near)
        assert tuple(secret.shape) == (2,)


def _tensor(hook: FrameworkHook, numbers: list[float]) -> Tensor:
    """Return a tensor that can be sent; if the hook adds no methods to tensors, this is a wrapper."""
    plain = hook.create_tensor(numbers)
    return plain if hasattr(plain, "send") else hook.attributes.wrapper(plain)


def _notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", ()))


def _count(world: World) -> int:
    (count,) = world.hook.local_worker.request_search("#count", world.far)
    counted: int = count()
    return counted


def _fail_and_go_on(x: Tensor, bad: Tensor, total: Tensor, far: Location) -> None:
    """Issue a command that fails, and more after it."""
    result = x.index_select(0, bad)
    total += 1
    total += result
    far.flush()


def _train(framework: ModuleType, model: Any, optimizer: str, data: Tensor, target: Tensor) -> Tensor:
    """Train a model for three steps, and return the last loss."""
    chosen = getattr(framework.optim, optimizer)(model.parameters(), lr=0.1)
    for _ in range(3):
        chosen.zero_grad()
        loss = ((model(data) - target) ** 2).mean()
        loss.backward()
        chosen.step()
    return loss
