from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
import syft_core as sy  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.pointers.object_pointer import new_id  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.group import find_group  # noqa: E402
from syft_mpc.messages import RunProtocol  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.protocol import PROTOCOLS, Spec  # noqa: E402
from syft_torch.differential_privacy import noisy_max as protocol  # noqa: E402
from syft_torch.differential_privacy.noisy_max import REFUSED  # noqa: E402
from syft_torch.differential_privacy.votes import GNMax  # noqa: E402
from tests.syft_mpc import test_simulation as simulation  # noqa: E402
from tests.syft_mpc.groups import Group  # noqa: E402
from tests.syft_mpc.test_attacks import deliver  # noqa: E402
from tests.syft_mpc.test_simulation import Scenario, bound  # noqa: E402

from .test_votes import send_labels  # noqa: E402

NAMES = ("bob", "alice", "dora")


@pytest.fixture
def workers(hook: Any) -> list[Any]:
    """Return three workers that vote, and the provider."""
    return [sy.VirtualWorker(hook, id=name) for name in (*NAMES, "carol")]


@pytest.mark.parametrize("classes", [2, 10, 16, 17, 40])
@pytest.mark.parametrize("count", [2, 3])
def test_with_little_noise_the_class_with_most_votes_is_the_answer(
    workers: list[Any], classes: int, count: int
) -> None:
    random = np.random.default_rng(classes)
    table = random.integers(0, classes, (31, 50))
    table[:, :2] = [[classes - 1, 0]]
    tally = np.stack([(table == label).sum(0) for label in range(classes)])
    clear = np.sort(tally, 0)[-1] > np.sort(tally, 0)[-2]

    answers = GNMax(classes, sigma=1e-3).vote(send_labels(table, workers[:count]), workers[3]).get()

    assert clear.sum() > 5
    assert answers[torch.tensor(clear)].tolist() == tally.argmax(0)[clear].tolist()
    assert set(answers.tolist()) <= set(range(classes))


@pytest.mark.parametrize("classes", [2, 3, 16, 17, 40])
def test_of_classes_with_equal_counts_the_first_is_the_answer(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_add_noise", lambda x: x)
    random = np.random.default_rng(classes)
    labels = random.integers(-1, classes, (3, 4, 60))
    labels[:, :, :2] = -1, 0  # Nobody votes, or all do for one class.
    tally = np.stack([(labels == label).sum((0, 1)) for label in range(classes)])

    for threshold in (0, 4):
        options = {"classes": classes, "scale": 1, "threshold": threshold, "threshold_scale": int(threshold > 0)}
        answers = sum(Group(3, NumpyKernels()).run("noisy_max", list(labels), **options))

        expected = np.where(tally.max(0) >= threshold, tally.argmax(0), REFUSED)
        assert answers.tolist() == expected.tolist()


@pytest.mark.parametrize("scale", [1, 1 << 40])
def test_the_most_votes_with_the_most_noise_do_not_wrap_around(scale: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest numbers that the options permit: 2^60 steps, and noise of 2^30 from each worker."""
    monkeypatch.setattr(protocol, "_add_noise", lambda x: x - (1 << 30))
    labels = [np.zeros((protocol.MAX_TEACHERS // 2, 1), dtype="int64")] * 2
    options = {"classes": 2, "scale": scale, "threshold": scale, "threshold_scale": scale}

    votes = sum(Group(2, NumpyKernels()).run("noisy_max", labels, **options))

    assert votes.tolist() == [0 if scale > 1 else REFUSED]


def labels_of_all(group: Group, secret: int) -> list[Any]:
    """Let all teachers vote for one class."""
    return [[np.full((2, simulation.SIZE), secret)] * group.count]


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario("noisy_max", labels_of_all, (0, 2), {"classes": 3, "scale": 1 << 20}, 3),
        Scenario(
            "noisy_max", labels_of_all, (0, 1), {"classes": 2, "scale": 1, "threshold": 9, "threshold_scale": 2}, 2
        ),
        Scenario("noisy_max", labels_of_all, (0, 16), {"classes": 17, "scale": 1 << 20}, 2),
    ],
    ids=["few classes", "threshold", "many classes"],
)
def test_what_each_party_sees_is_uniform_and_independent_of_the_votes(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without noise: what is sent must hide the counts by itself.
    monkeypatch.setattr(protocol, "_add_noise", lambda x: x)

    simulation.test_what_each_party_sees_is_uniform_and_independent_of_the_secrets(scenario)


def test_the_share_of_a_party_is_uniform() -> None:
    group = Group(3, NumpyKernels())
    shares = [group.run("noisy_max", [np.zeros((1, 500), dtype="int64")] * 3, classes=2, scale=1)[1] for _ in range(10)]

    count = np.bincount(np.frombuffer(np.concatenate(shares).tobytes(), "uint8"), minlength=256)
    expected = count.sum() / 256
    assert ((count - expected) ** 2 / expected).sum() < bound(255)


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("classes", [2, 3, 10, 16, 17, 33])
@pytest.mark.parametrize("threshold", [0, 5])
def test_the_protocol_costs_what_it_declares(parties: int, classes: int, threshold: int) -> None:
    group, entry = Group(parties, NumpyKernels()), PROTOCOLS["noisy_max"]
    options = {"classes": classes, "scale": 1 << 10, "threshold": threshold, "threshold_scale": threshold}
    labels = np.zeros((2, 24), dtype="int64")

    rounds, sent = group.measure("noisy_max", [labels] * parties, **options)

    spec = Spec((2, 24), "int64")
    assert rounds == entry.rounds(spec, **options)
    assert sent == entry.sends(spec, **options) * parties * (parties - 1)


@pytest.mark.parametrize(
    "options",
    [
        {"classes": 1, "scale": 1},
        {"classes": 10**9, "scale": 1},
        {"classes": 2, "scale": 0},
        {"classes": 2, "scale": -1},
        {"classes": 2, "scale": 1 << 50},
        {"classes": 2, "scale": 1, "threshold": -1, "threshold_scale": 1},
        {"classes": 2, "scale": 1, "threshold": 1, "threshold_scale": -1},
        {"classes": 2, "scale": None},
        {"classes": 2, "scale": "1"},
        {"classes": 2, "scale": 1.5},
        {"classes": 2, "scale": 1 << 70},
    ],
)
def test_workers_refuse_options_out_of_range(hook: Any, options: dict[str, Any]) -> None:
    """A client that is not this library may send anything to a worker, and to the provider."""
    bob, alice, carol = (VirtualWorker(hook, id=name, serialize=True) for name in ("bob", "alice", "carol"))
    labels = torch.zeros(2, 3, dtype=torch.int64)
    ends = [labels.send(worker).child for worker in (bob, alice)]
    group = find_group(ends[0].owner, [bob, alice], carol, ends[0].framework)
    call = (group._channel, group._number + 1, "noisy_max")

    for worker, operand in ((bob, ends[0]), (carol, ((2, 3), "int64"))):
        with pytest.raises(ProtocolError, match="cannot vote|has a wrong type|is too large"):
            deliver(worker, RunProtocol(*call, (operand,), options, new_id(), 1, False), Peer("me"))
