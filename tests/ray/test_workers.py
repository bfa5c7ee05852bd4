"""Workers in actors: who may speak to them, how they reach each other, and what happens when they are lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import AuthenticationError, ConnectionLostError, WorkerIdTakenError, WorkerNotFoundError
from syft_ray.buffers import pack
from syft_ray.errors import ActorLostError, RayStartError

pytest.importorskip("ray")
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def module_hook() -> Iterator[Any]:
    with sy.TorchHook(torch) as hook:
        yield hook


@pytest.fixture(scope="module")
def workers(module_hook: Any) -> Iterator[Any]:
    with sy.RayWorkers(module_hook, 6, actors=2) as started:
        yield started


def test_workers_are_spread_over_actors_and_found_by_id(workers: Any) -> None:
    assert len(workers) == 6
    assert len({worker.actor for worker in workers}) == 2
    assert (torch.ones(2).send("ray-5") + 1).get().tolist() == [2.0, 2.0]
    assert repr(workers) == "<RayWorkers: 6 workers in 2 actors>"
    assert workers[1].remote.torch.zeros(2).get().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("other", [1, 2], ids=["another actor", "the same actor"])
def test_tensors_move_between_workers(workers: Any, other: int) -> None:
    x = torch.tensor([1.0, 2.0]).send(workers[0])

    moved = (x * 2).move(workers[other])

    assert moved.location.id == f"ray-{other}"
    assert (moved + 1).get().tolist() == [3.0, 5.0]


def test_large_tensors_arrive_whole_and_can_be_changed(workers: Any) -> None:
    plain = torch.arange(1_000_000.0)

    x = plain.send(workers[0])
    x += 1

    assert torch.equal(x.get(), plain + 1)


def test_workers_in_actors_compute_on_shares(workers: Any) -> None:
    x = torch.tensor([1.5, -2.0]).fix_prec().share(workers[0], workers[1], crypto_provider=workers[2])

    assert torch.relu(x * x - 3).get().float_prec().tolist() == [0.0, 1.0]


def test_only_a_client_with_a_key_of_the_actor_is_served(workers: Any) -> None:
    actor = workers.actors[0]

    with pytest.raises(AuthenticationError, match="the key of the client is not valid"):
        actor.ask("deliver", b"guess" * 8, "ray-0", 0, pack([b""]))
    with pytest.raises(AuthenticationError, match="another client is called 'me'"):
        actor.ask("admit", "me", None, False)
    with pytest.raises(WorkerNotFoundError, match="cannot find worker 'ray-1'"):
        actor.ask("deliver", actor.keys["me"], "ray-1", 0, pack([b""]))


def test_ids_that_are_taken_are_refused_before_anything_starts(module_hook: Any, workers: Any) -> None:
    with pytest.raises(WorkerIdTakenError):
        sy.RayWorkers(module_hook, 1)
    with pytest.raises(RayStartError, match="two workers have the same id"):
        sy.RayWorkers(module_hook, ids=["a", "a"])
    with pytest.raises(RayStartError, match="count is -1; pass"):
        sy.RayWorkers(module_hook, -1)
    with pytest.raises(RayStartError, match="actors is 0; pass"):
        sy.RayWorkers(module_hook, 1, actors=0)


def test_a_dead_actor_is_named(module_hook: Any, ray: Any) -> None:
    with sy.RayWorkers(module_hook, ids=["doomed"]) as doomed:
        x = torch.ones(2).send(doomed[0])
        ray.kill(doomed.actors[0].handle)

        with pytest.raises(ActorLostError, match="cannot reach worker 'doomed': actor 1 of 1 has ended; .* start new"):
            x.get()
        for _ in range(3):
            with pytest.raises(ActorLostError):
                x.get()
        with pytest.raises(ActorLostError):
            torch.ones(2).send(doomed[0]).get()


def test_closed_workers_say_so_and_their_ids_are_free(module_hook: Any) -> None:
    closed = sy.RayWorkers(module_hook, ids=["brief"])
    worker = closed[0]
    closed.close()
    closed.close()

    with pytest.raises(ConnectionLostError, match="cannot use worker 'brief': its RayWorkers were closed"):
        torch.ones(2).send(worker)
    assert sy.VirtualWorker(module_hook, id="brief").id == "brief"
    assert len(closed) == 0


def test_a_setup_that_fails_is_reported(module_hook: Any) -> None:
    def setup(worker: Any) -> None:
        raise KeyError("no such file")

    with pytest.raises(RayStartError, match="`setup` of worker 'north' raised KeyError"):
        sy.RayWorkers(module_hook, ids=["north"], setup=setup)


def test_actors_that_find_no_cpu_are_reported(module_hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syft_ray.workers.START_SECONDS", 20.0)

    with pytest.raises(RayStartError, match="cannot start 99 actors on Ray: after 20 seconds, .* run; each needs one"):
        sy.RayWorkers(module_hook, ids=["north"], actors=99)


LOST = """
import time, torch, ray, syft_core as sy
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
node = cluster.add_node(num_cpus=1)
hook = sy.TorchHook(torch)
workers = sy.RayWorkers(hook, 1, address=cluster.address)
x = torch.ones(2).send(workers[0])
print((x + 1).get().tolist())
cluster.remove_node(node, allow_graceful=False)
try:
    while True:  # The actor ends some time after its machine.
        (x + 1).get()
        time.sleep(0.2)
except sy.ray.errors.ActorLostError as error:
    print("first:", error)
while True:  # Ray knows what has happened some time later.
    try:
        workers.actors[0].ask("ready")
    except sy.ray.errors.ActorLostError as error:
        if "machine;" in str(error):
            print("then:", error)
            break
    time.sleep(0.2)
workers.close()
cluster.shutdown()
"""


def test_the_actor_of_a_lost_machine_is_named(run_program: Any) -> None:
    text = run_program(LOST)

    assert "[2.0, 2.0]" in text
    assert re.search("first: cannot reach worker 'ray-0': actor 1 of 1 (was lost|does not answer|has ended)", text)
    assert "then: cannot reach its workers: actor 1 of 1 was lost with its machine; the objects" in text
