"""Votes that nobody sees: what the workers compute, what each party sees, and what leaves."""

from __future__ import annotations

import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_privacy import noise  # noqa: E402
from syft_privacy.epsilon import ORDERS  # noqa: E402
from syft_torch.differential_privacy import noisy_max as protocol  # noqa: E402
from syft_torch.differential_privacy.noisy_max import REFUSED, STEPS  # noqa: E402
from syft_torch.differential_privacy.pate import rdp_gnmax  # noqa: E402
from syft_torch.differential_privacy.votes import GNMax  # noqa: E402
from syft_torch.federated.arranging import Half, arrange_there  # noqa: E402
from syft_worker.desk.approvals import suggest_conditions  # noqa: E402
from tests.syft_mpc.groups import Group  # noqa: E402
from tests.syft_mpc.test_simulation import bound  # noqa: E402

from .votes import complete, divergence, log_probabilities  # noqa: E402

NAMES = ("bob", "alice", "dora")


@pytest.fixture
def workers(hook: Any) -> list[Any]:
    """Return three workers that vote, and the provider."""
    return [sy.VirtualWorker(hook, id=name) for name in (*NAMES, "carol")]


def send_labels(labels: np.ndarray, workers: list[Any], private: bool = False) -> list[Any]:
    """Distribute the rows of a table of labels among workers; return pointers."""
    parts = np.array_split(labels, len(workers))
    if not private:
        return [torch.tensor(part).send(worker) for part, worker in zip(parts, workers, strict=True)]
    for part, worker in zip(parts, workers, strict=True):
        worker.load_data([torch.tensor(part).private_tensor([]).tag("#labels")])
        worker.trust(*[other.id for other in (*workers, "carol") if other is not worker and other != "carol"], "carol")
    return [worker.search("#labels")[0] for worker in workers]


def to_labels(counts: list[int], queries: int) -> np.ndarray:
    """Return a row for each teacher, such that each query gets these votes."""
    return np.repeat(np.repeat(np.arange(len(counts)), counts)[:, None], queries, 1)


# --- answers


def test_workers_may_have_different_numbers_of_teachers(workers: list[Any]) -> None:
    tables = ([[0, 1]], [[1, 1]] * 4, [[0, 1]] * 2)
    pointers = [torch.tensor(table).send(worker) for table, worker in zip(tables, workers, strict=False)]

    assert GNMax(2, sigma=1e-3).vote(pointers, workers[3]).get().tolist() == [1, 1]


def test_a_teacher_has_one_vote_and_labels_outside_of_the_classes_have_none(workers: list[Any]) -> None:
    tables = ([[2**62, -5, 0]], [[1, 1, 1]], [[-1, 7, 0]])
    pointers = [torch.tensor(table).send(worker) for table, worker in zip(tables, workers, strict=False)]

    assert GNMax(2, sigma=1e-3).vote(pointers, workers[3]).get().tolist() == [1, 1, 0]


@pytest.mark.parametrize("classes", [3, 20])
def test_a_query_on_which_few_teachers_agree_is_refused(workers: list[Any], classes: int) -> None:
    table = np.stack([np.full(30, 2), np.arange(30) % 3, np.where(np.arange(30) < 21, 1, 0)], 1)
    method = GNMax(classes, sigma=1e-3, threshold=20, threshold_sigma=1e-3)

    answers = method.vote(send_labels(table, workers[:3]), workers[3]).get()

    assert answers.tolist() == [2, REFUSED, 1]


def test_refused_queries_are_paid(workers: list[Any]) -> None:
    method = GNMax(3, sigma=20, threshold=30, threshold_sigma=40)

    refused = method.guarantee([REFUSED] * 50, 1e-5)
    mixed = method.guarantee([REFUSED] * 25 + [1] * 25, 1e-5)

    rate = 50 / (2 * 40**2)
    exact = min(
        rate * order + math.log1p(-1 / order) - math.log(1e-5 * order) / (order - 1) for order in ORDERS.tolist()
    )
    assert refused.epsilon == pytest.approx(exact, rel=1e-9)
    assert mixed.epsilon > refused.epsilon
    assert GNMax(3, sigma=20).guarantee([], 1e-5).epsilon == 0
    with pytest.raises(ValueError, match="cannot use 'answers': .* from 0 to 2"):  # Without a test, none is refused.
        GNMax(3, sigma=20).guarantee([REFUSED] * 50, 1e-5)


def test_the_analysis_of_an_auditor_uses_the_noise_of_all_workers() -> None:
    counts = np.asarray([[80, 20, 0]] * 30)
    answers = [0] * 30

    private = GNMax(3, sigma=20, colluding=1).analyse(counts, answers, 1e-5, workers=3)

    total = 20 * math.sqrt(3 / 2)
    assert private._curve.rdp(np.asarray([5.0]))[0] == pytest.approx(30 * rdp_gnmax(counts[0], total, 5.0), rel=1e-4)
    assert private.independent.epsilon < GNMax(3, sigma=20).guarantee(answers, 1e-5).epsilon


def test_votes_work_through_the_wire_format(hook: Any) -> None:
    parties = [sy.VirtualWorker(hook, id=f"{name} by wire", serialize=True) for name in (*NAMES, "carol")]
    table = np.asarray([[0, 1, 2]] * 9)
    method = GNMax(3, sigma=1e-3, threshold=5, threshold_sigma=1e-3)

    assert method.vote(send_labels(table, parties[:3]), parties[3]).get().tolist() == [0, 1, 2]


# --- noise


@pytest.mark.parametrize(("counts", "neighbour"), [([5, 4, 0], [4, 5, 0]), ([6, 3, 0], [6, 2, 1])])
def test_the_loss_of_20000_releases_on_neighbouring_votes_is_within_the_bound(
    workers: list[Any], counts: list[int], neighbour: list[int]
) -> None:
    sigma, order, releases, batches = 3.0, 2.0, 20_000, 4
    method = GNMax(3, sigma=sigma, colluding=1)
    total = sigma * math.sqrt(3 / 2)  # All three workers draw noise, and two would be enough.
    found = []
    for case in (counts, neighbour):
        tally = np.zeros(3)
        for _ in range(batches):
            pointers = send_labels(to_labels(case, releases // batches), workers[:3])
            tally += np.bincount(method.vote(pointers, workers[3]).get().numpy(), minlength=3)
        expected = np.exp(log_probabilities(case, total)) * releases
        assert ((tally - expected) ** 2 / expected).sum() < bound(2), "the noise has another size"
        found.append(complete(tally / releases))

    error = 10 / math.sqrt(releases)  # A frequency is further off with a probability of less than e^-40.
    for here, there in (found, found[::-1]):
        loss = divergence(here, there, order)
        assert loss <= float(rdp_gnmax(counts, sigma, order)) + 2 * error
        for delta, chosen in product((0.01, 0.05, 0.2), ([0], [1], [2], [0, 1], [0, 2], [1, 2])):
            # No set of answers is more than e^ε times as likely, up to δ.
            factor = math.exp(method.guarantee([0], delta).epsilon)
            above = np.exp(here)[chosen].sum() - factor * np.exp(there)[chosen].sum()
            assert above <= delta + error * math.sqrt(1 + factor**2)
    assert divergence(*found, order) > 0


def test_the_noise_of_the_threshold_test_has_its_size(workers: list[Any]) -> None:
    method = GNMax(2, sigma=1e-3, threshold=8, threshold_sigma=2.0, colluding=1)
    releases = 6000

    answers = method.vote(send_labels(to_labels([7, 2], releases), workers[:3]), workers[3]).get()

    chance = math.erfc(1 / (2.0 * math.sqrt(3 / 2) * math.sqrt(2))) / 2
    passed = int((answers == 0).sum())
    assert passed + int((answers == REFUSED).sum()) == releases
    assert abs(passed - chance * releases) < math.sqrt(bound(1) * chance * (1 - chance) * releases)


def test_each_worker_draws_noise_of_its_own_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def record(sigma: int, shape: tuple[int, ...]) -> np.ndarray:
        drawn.append(noise.discrete_gaussian(sigma, shape))
        return drawn[-1]

    monkeypatch.setattr(protocol, "discrete_gaussian", record)
    group = Group(3, NumpyKernels())
    for _ in range(2):
        drawn.clear()
        group.run("noisy_max", [np.zeros((1, 4), dtype="int64")] * 3, classes=3, scale=10)
        parts = [part for part in drawn if np.any(part)]
        assert len(parts) >= 3
        assert len({part.tobytes() for part in parts}) == len(parts)


def test_nothing_on_the_path_of_an_answer_draws_floats(workers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import random  # noqa: PLC0415  # its functions are forbidden here

    def refuse(*_args: object, **_options: object) -> None:
        pytest.fail("a float, or a generator that can be predicted, was used")

    pointers = send_labels(to_labels([6, 3], 20), workers[:3])
    for module, names in (
        (torch, "normal randn randn_like rand rand_like randint bernoulli"),
        (np.random, "normal standard_normal randn rand random randint default_rng"),
        (random, "random gauss normalvariate randint"),
    ):
        for name in names.split():
            monkeypatch.setattr(module, name, refuse)
    method = GNMax(2, sigma=2.0, threshold=4, threshold_sigma=2.0)

    assert set(method.vote(pointers, workers[3]).get().tolist()) <= {REFUSED, 0, 1}


def test_the_code_on_the_path_of_an_answer_names_no_float_generator() -> None:
    root = Path(sy.__file__).parents[1]
    sources = [
        root / "syft_privacy" / "noise.py",
        *[root / "syft_torch" / "differential_privacy" / f"{name}.py" for name in ("noisy_max", "votes")],
        *(root / "syft_mpc").rglob("*.py"),
    ]

    forbidden = re.compile(r"torch\.normal|\brandn|(?:np|numpy)\.random|^import random|from random import|\.gauss\(")
    found = {path.name: forbidden.findall(path.read_text(encoding="utf-8")) for path in sources}
    assert {name: lines for name, lines in found.items() if lines} == {}


# --- what leaves


def test_only_the_answer_leaves_and_only_with_the_approval_of_all_owners(workers: list[Any]) -> None:
    *parties, provider = workers
    pointers = send_labels(to_labels([20, 5], 4), parties, private=True)
    before = {party.id: set(party.object_store) for party in parties}

    answers = GNMax(2, sigma=3.0).vote(pointers, provider)

    for party in parties:  # Neither counts nor noise are stored.
        kept = [party.get_obj(id) for id in set(party.object_store) - before[party.id]]
        assert [tuple(part.shape) for part in kept if part.shape != (9, 4)] == [(4,)]
    for part in (answers, *pointers):
        with pytest.raises(GetNotPermittedError, match="it is private, or was computed from something private"):
            part.get()
    requests = answers.request("labels for the student")
    for party in parties:
        party.approve(requests[party.id])
    assert set(answers.get(reason="batch 1").tolist()) <= {0, 1}
    for party in parties:
        assert len([entry for entry in party.ledger if entry.event == "released"]) == 1


def test_one_owner_can_withhold_an_answer(workers: list[Any]) -> None:
    *parties, provider = workers
    answers = GNMax(2, sigma=3.0).vote(send_labels(to_labels([20, 5], 4), parties, private=True), provider)
    requests = answers.request("labels")
    for party in parties[:2]:
        party.approve(requests[party.id])
    parties[2].deny(requests[parties[2].id], "the budget is spent")

    with pytest.raises(GetNotPermittedError, match="the budget is spent"):
        answers.get()


def test_owners_and_ledgers_see_how_an_answer_was_computed(workers: list[Any]) -> None:
    *parties, provider = workers
    pointers = send_labels(to_labels([20, 5], 4), parties, private=True)
    answers = GNMax(2, sigma=3.0).vote(pointers, provider)
    answers.request("labels")
    scale = math.floor(STEPS * math.sqrt(2) / 3.0)

    for party in parties:
        request = party.requests[0]
        (made_by,) = request.made_by
        assert made_by[:3] == ("noisy_max", (("classes", 2), ("scale", scale)), NAMES)
        assert f"of noisy_max(classes=2, scale={scale}) among 3 parties" in str(party.requests)
        assert GNMax(2, sigma=3.0).covers(request, workers=3)
        party.approve(request)
    answers.get()
    assert "of noisy_max" in parties[0].ledger[-1].form


def assign_data(share: Any, labels: Any) -> None:
    share.data = labels


@pytest.mark.parametrize(
    "overwrite",
    [
        lambda share, labels: share.copy_(labels),
        lambda share, labels: share[:].copy_(labels),
        lambda share, labels: share.view(2, 2).add_(labels.view(2, 2)),
        lambda share, labels: share.detach().mul_(labels),
        lambda share, labels: share.__setitem__(slice(0, 2), labels[:2]),
        lambda share, labels: torch.add(labels, 0, out=share),
        lambda share, labels: torch._foreach_add_([share], [labels]),
        assign_data,
    ],
    ids=["copy_", "slice", "view", "detach", "setitem", "out", "foreach", "data"],
)
def test_a_share_that_a_client_overwrites_is_not_shown_as_an_answer(workers: list[Any], overwrite: Any) -> None:
    """A client that writes labels into the place of the answer gets no approval for them."""
    *parties, provider = workers
    pointers = send_labels(to_labels([20, 5], 4), parties, private=True)
    answers = GNMax(2, sigma=3.0).vote(pointers, provider)

    overwrite(answers.child.child[parties[0].id].wrap(), pointers[0][0])
    answers.request("labels")

    assert parties[0].requests[0].made_by == [None]
    assert "noisy_max" not in str(parties[0].requests)
    assert not GNMax(2, sigma=3.0).covers(parties[0].requests[0], workers=3)
    assert GNMax(2, sigma=3.0).covers(parties[1].requests[0], workers=3)


def test_what_is_computed_from_an_answer_is_not_shown_as_one(workers: list[Any]) -> None:
    *parties, provider = workers
    pointers = send_labels(to_labels([20, 5], 4), parties, private=True)
    answers = GNMax(2, sigma=3.0).vote(pointers, provider)

    (answers + 1).request("labels")
    pointers[0].request("labels")

    assert [request.made_by for request in parties[0].requests] == [[None], [None]]
    assert not any(GNMax(2, sigma=3.0).covers(request, workers=3) for request in parties[0].requests)


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        (GNMax(2, sigma=0.3), 3),
        (GNMax(2, sigma=3.0, colluding=0), 3),
        (GNMax(3, sigma=3.0), 3),
        (GNMax(2, sigma=3.0, threshold=5, threshold_sigma=1.0), 3),
        (GNMax(2, sigma=3.0 * math.sqrt(1 / 2)), 2),
    ],
    ids=["less noise", "less of each", "other classes", "a test", "fewer workers"],
)
def test_other_votes_than_those_agreed_on_are_not_covered(workers: list[Any], asked: GNMax, count: int) -> None:
    *parties, provider = workers
    pointers = send_labels(to_labels([20, 5], 4), parties[:count], private=True)

    asked.vote(pointers, provider).request("labels")

    request = parties[0].requests[0]
    assert asked.covers(request, workers=count)
    assert not GNMax(2, sigma=3.0).covers(request, workers=3)


def load_labels(parties: list[Any]) -> list[Any]:
    """Let owners load the labels of eight teachers, for three queries."""
    for party in parties:
        party.load_data([torch.tensor([[1, 0, 1]] * 8).private_tensor([]).tag("#labels", "#2026")])
        party.trust(*NAMES, "carol")
    return [party.search("#labels")[0] for party in parties]


def test_an_owner_approves_votes_on_the_labels_that_they_loaded(workers: list[Any]) -> None:
    *parties, provider = workers
    method = GNMax(2, sigma=3.0)

    method.vote(load_labels(parties), provider).request("labels")

    for party in parties:
        request = party.requests[0]
        assert method.covers(request, workers=3, labels="#labels", samples=3)
        assert not method.covers(request, workers=3, labels="#scans")
        assert not method.covers(request, workers=3, samples=4)


@pytest.mark.parametrize(
    "change",
    [
        lambda labels: labels[:1].expand(2000, 3),
        lambda labels: labels[:, :1].expand(-1, 2000),
        lambda labels: labels[:, :1].repeat(1, 3),
        lambda labels: labels[:],
        lambda labels: labels.clone(),
        lambda labels: 1 - labels,
    ],
    ids=["teachers", "queries", "three queries", "view", "copy", "computed"],
)
def test_a_vote_on_what_a_client_made_of_the_labels_is_not_covered(workers: list[Any], change: Any) -> None:
    """Noise hides one vote: not a record that has two thousand, or that is asked about two thousand times."""
    *parties, provider = workers
    method = GNMax(2, sigma=3.0)

    method.vote([change(labels) for labels in load_labels(parties)], provider).request("labels")

    request = parties[0].requests[0]
    assert method.covers(request, workers=3)
    assert not method.covers(request, workers=3, labels="#labels")


def test_a_vote_on_the_labels_of_a_client_is_not_covered(workers: list[Any]) -> None:
    *parties, provider = workers
    method = GNMax(2, sigma=3.0)
    own = torch.tensor([[1, 0, 1]] * 8).send(parties[1]).tag("#labels")
    first, last = load_labels([parties[0], parties[2]])

    method.vote([first, own, last], provider).request("labels")

    assert method.covers(parties[0].requests[0], workers=3, labels="#labels")
    assert not any(method.covers(request, workers=3, labels="#labels") for request in parties[1].requests)


def test_a_vote_on_private_labels_needs_the_trust_of_their_owner(workers: list[Any]) -> None:
    *parties, provider = workers
    for party in parties:
        party.load_data([torch.zeros(2, 3, dtype=torch.int64).private_tensor([]).tag("#labels")])

    with pytest.raises(ProtocolError, match="its owner does not trust them"):
        GNMax(2, sigma=3.0).vote([party.search("#labels")[0] for party in parties], provider)


# --- bad input


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"classes": 1}, "classes"),
        ({"classes": 2.5}, "classes"),
        ({"classes": 5000}, "classes"),
        ({"sigma": 0}, "sigma"),
        ({"sigma": -1.0}, "sigma"),
        ({"sigma": math.nan}, "sigma"),
        ({"threshold": 3}, "threshold"),
        ({"threshold_sigma": 3}, "threshold_sigma"),
        ({"threshold": 3, "threshold_sigma": 0}, "threshold_sigma"),
        ({"threshold": -3, "threshold_sigma": 1}, "threshold"),
        ({"colluding": -1}, "colluding"),
    ],
)
def test_bad_settings_are_refused_by_name(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"cannot .*'{name}'"):
        GNMax(**{"classes": 3, "sigma": 2.0, **options})


def test_too_many_queries_at_once_are_refused(workers: list[Any]) -> None:
    many = [torch.zeros(1, 1, dtype=torch.int64).send(worker).expand(1, 100_000) for worker in workers[:2]]

    with pytest.raises(ProtocolError, match="cannot vote on more than 93206 queries at once: .* ask in parts"):
        GNMax(10, sigma=2.0).vote(many, workers[3])


def test_bad_predictions_are_refused(workers: list[Any]) -> None:
    bob, alice, _, carol = workers
    method, good = GNMax(2, sigma=2.0), torch.zeros(2, 3, dtype=torch.int64)

    def vote(*pointers: Any, method: GNMax = method) -> Any:
        return method.vote(pointers, carol)

    with pytest.raises(TypeError, match="'predictions' must be pointers to labels"):
        vote(good, good)
    with pytest.raises(ValueError, match="'predictions' must have a row for each teacher"):
        vote(good[0].send(bob), good[0].send(alice))
    with pytest.raises(ValueError, match="'predictions' must have a row for each teacher"):
        vote(good.send(bob), good[:, :2].send(alice))
    with pytest.raises(ValueError, match="'predictions' must have a row for each teacher"):
        vote()
    with pytest.raises(TypeError, match="labels of the type int64"):
        vote(good.float().send(bob), good.send(alice))
    with pytest.raises(ValueError, match="'predictions' has two pointers to one worker"):
        vote(good.send(bob), good.send(bob), good.send(alice))
    with pytest.raises(ValueError, match="cannot vote among 1 workers: more than 'colluding'"):
        vote(good.send(bob))
    with pytest.raises(ValueError, match="cannot vote among 2 workers: more than 'colluding'"):
        vote(good.send(bob), good.send(alice), method=GNMax(2, sigma=2.0, colluding=2))
    with pytest.raises(ValueError, match="cannot vote: 'sigma' is too small for exact noise"):
        vote(good.send(bob), good.send(alice), method=GNMax(2, sigma=1e-9))
    with pytest.raises(ValueError, match="cannot vote: 'sigma' is too large for exact noise"):
        vote(good.send(bob), good.send(alice), method=GNMax(2, sigma=1e9))
    with pytest.raises(ValueError, match="cannot use 'answers': it has labels outside of the classes"):
        method.guarantee([2], 1e-5)
    with pytest.raises(TypeError, match="cannot use 'answers': expected numbers"):
        method.guarantee(["a"], 1e-5)
    with pytest.raises(ValueError, match="cannot use 'delta'"):
        method.guarantee([1], 0)
    for votes, answers in (([[1, 2, 3]], [0]), ([[1, 2]], [0, 1]), ([1, 2], [0])):
        with pytest.raises(ValueError, match="cannot analyse 'votes': expected a row of 2 counts for each"):
            method.analyse(votes, answers, 1e-5, workers=3)


# --- rules for votes


def allow_votes(parties: list[Any], answers: Any, **conditions: Any) -> None:
    """Let each owner approve these votes from now on, as the page does from a request."""
    answers.request("labels")
    for party in parties:
        suggested = suggest_conditions(party, party.requests[-1])
        party.allow("votes", **{**suggested, "count": 9, **conditions})


def test_a_rule_for_votes_names_their_program_and_the_labels(hook: Any, workers: list[Any]) -> None:
    hook.local_worker.user = "dana"
    *parties, provider = workers
    pointers = send_labels(to_labels([20, 5], 4), parties, private=True)
    allow_votes(parties, GNMax(2, sigma=3.0).vote(pointers, provider))

    assert parties[0].rules.find("votes").conditions["labels"] == "#labels"
    assert GNMax(2, sigma=3.0).vote(pointers, provider).get().shape == (4,)
    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        GNMax(2, sigma=0.3).vote(pointers, provider).get()


def test_a_record_that_was_expanded_to_many_votes_is_refused(hook: Any, workers: list[Any]) -> None:
    """Noise hides one of many votes, not one record that has all of them."""
    hook.local_worker.user = "dana"
    *parties, provider = workers
    pointers = send_labels(to_labels([20, 5], 4), parties, private=True)
    expanded = [pointer[:1].expand(2000, 4) for pointer in pointers]
    allow_votes(parties, GNMax(2, sigma=3.0).vote(expanded, provider), labels="#labels")

    with pytest.raises(GetNotPermittedError, match="its votes are not the labels #labels as they were loaded"):
        GNMax(2, sigma=3.0).vote(expanded, provider).get()


def test_votes_of_some_rows_that_a_worker_has_drawn_are_refused(hook: Any, workers: list[Any]) -> None:
    hook.local_worker.user = "dana"
    *parties, provider = workers
    pointers = send_labels(to_labels([20, 5], 4), parties, private=True)
    some = [arrange_there(Half(0.2, is_test=True), [pointer])[0] for pointer in pointers]
    allow_votes(parties, GNMax(2, sigma=3.0).vote(some, provider), labels="#labels")

    with pytest.raises(GetNotPermittedError, match="its votes are not the labels #labels as they were loaded"):
        GNMax(2, sigma=3.0).vote(some, provider).get()
