"""The protocol of a vote: workers count, add noise and find the winner on shares; only the answers come out of it."""

from __future__ import annotations

from itertools import combinations

from syft_mpc.comparison import (
    count_comparisons,
    is_negative,
    is_zero,
    largest,
    sends_comparison,
    sends_tournament,
)
from syft_mpc.errors import ProtocolError
from syft_mpc.kernels import Array, dtype_name
from syft_mpc.protocol import PROTOCOLS, Role, Spec, Steps, Zeros, protocol, together
from syft_mpc.spdz import spdz_mul
from syft_privacy.noise import discrete_gaussian

REFUSED = -1
"""The answer to a query on which too few teachers agree; also the label of a teacher that does not vote."""
STEPS = 1 << 24
"""The standard deviation of a worker's noise in steps: large enough that one step does not matter."""
MAX_CLASSES = 4096
MAX_TEACHERS = 1 << 20
"""Maximum number of teachers of all workers together."""
MAX_SCALE = 1 << 40
"""Maximum number of steps of a vote: counts stay so small that differences of them can be compared."""
MAX_COMPARED = 1 << 22
"""Maximum number of pairs, or with many classes counts, compared in one run: each needs about 100 bytes."""
_FEW = 16
"""Up to this many classes, all pairs are compared, which takes the fewest rounds."""


def _count_rounds(labels: Spec, *, classes: int, threshold_scale: int = 0, **_options: int) -> int:
    levels = count_comparisons(classes)[0]
    rounds = 8 if classes <= _FEW else 5 * levels - 1
    return rounds + (6 if threshold_scale else 0)


def _count_bytes(labels: Spec, *, classes: int, threshold_scale: int = 0, **_options: int) -> int:
    queries, dtype = labels.shape[1], labels.dtype
    zeros = PROTOCOLS[is_zero.__name__].sends
    if classes > _FEW:
        sent = sends_tournament(Spec((classes, queries), dtype), positions=True)
    else:
        tests = zeros(Spec((classes, queries), dtype)) if callable(zeros) else zeros
        sent = sends_comparison(classes * (classes - 1) // 2 * queries, dtype) + tests
    if not threshold_scale:
        return sent
    return 2 * sent + sends_comparison(queries, dtype) + 16 * classes * queries + 16 * queries


@protocol(
    rounds=_count_rounds,
    sends=_count_bytes,
    opens="the same as is_negative and is_zero, or as largest; with a threshold also as spdz_mul",
    uses="sign masks, zero masks; with many classes or a threshold also triples",
    protects=True,
)
def noisy_max(
    party: Role, labels: Array, *, classes: int, scale: int, threshold: int = 0, threshold_scale: int = 0
) -> Steps:
    """Compute, for each query, the class with most votes of all parties' teachers, with noise of each party.

    ``labels`` are this party's own: a row for each of its teachers, a column for each query. A teacher has one vote for
    each query, whatever its label; one that is not a class is no vote. The noise of a party has a standard deviation of
    ``STEPS``, and a vote counts ``scale`` steps.

    1. Each party counts the votes of its teachers, and adds random shares of zeros: shares of the counts [n].
    2. Each party adds noise of its own to its shares.
    3. The parties compute which class has the largest [n + z]: the one that is less than none of the others.
    4. With ``threshold_scale``, in which a vote counts so many steps, they compute [max n] in the same way, without
       noise, and compare [max n + z'] with ``threshold``, in steps. Below it the answer is ``REFUSED``.

    Rounds: 8; with a threshold 6 more. Nothing but the answers leaves the protocol.
    """
    _require_options(party.count, labels, classes, scale, threshold, threshold_scale)
    kernels, dtype = party.kernels, dtype_name(labels)
    tally = [kernels.sum(kernels.cast(labels == label, dtype), 0) for label in range(classes)]
    counts = kernels.stack(tally, 0)
    (zeros,) = yield Zeros((Spec(tuple(counts.shape), dtype),))
    counts = counts + zeros
    noisy = _add_noise(counts * scale)
    if threshold_scale:
        chosen, first = yield from together(_mark_largest(party, noisy), _mark_largest(party, counts))
        most = kernels.sum((yield from spdz_mul(party, first, counts)), 0)
        lead = _add_noise(most * threshold_scale) - (threshold if party.leads else 0)
        passes = yield from is_negative(party, lead, negated=True)
    else:
        chosen, passes = (yield from _mark_largest(party, noisy)), None
    # Labels from 1 on, because a refused query has 0 until the end.
    answer = kernels.sum(chosen * kernels.column(range(1, classes + 1), chosen[0], dtype), 0)
    if passes is not None:
        answer = yield from spdz_mul(party, answer, passes)
    return answer - 1 if party.leads else answer


def _require_options(count: int, labels: Array, classes: int, scale: int, threshold: int, threshold_scale: int) -> None:
    """Raise unless options are in range: a client's options must not exhaust a worker, or wrap around."""
    if len(labels.shape) != 2 or dtype_name(labels) != "int64":
        raise ProtocolError("cannot vote: expected labels of 64 bits, with a row for each teacher (malformed message)")
    limits = [(classes, 2, MAX_CLASSES), (scale, 1, MAX_SCALE), (threshold_scale, 0, MAX_SCALE)]
    limits.append((threshold, 0, MAX_SCALE * MAX_TEACHERS))
    if not all(type(number) is int and least <= number <= most for number, least, most in limits):
        raise ProtocolError("cannot vote: an option is out of range (malformed message)")
    if labels.shape[0] * count > MAX_TEACHERS:
        raise ProtocolError(f"cannot vote: there are more than {MAX_TEACHERS} teachers; use fewer")
    most = MAX_COMPARED // (classes * (classes - 1) // 2 if classes <= _FEW else classes)
    if labels.shape[1] > most:
        raise ProtocolError(f"cannot vote on more than {most} queries at once: it needs too much memory; ask in parts")


def _mark_largest(party: Role, x: Array) -> Steps:
    kernels, count = party.kernels, x.shape[0]
    if count > _FEW:
        _, chosen = yield from largest(party, x, positions=True)
        return chosen
    pairs = list(combinations(range(count), 2))
    firsts, seconds = (kernels.select(x, places) for places in zip(*pairs, strict=True))
    less = yield from is_negative(party, firsts - seconds)
    # How many others each value loses against: as the first of a pair if it is less, as the second if not.
    one = 1 if party.leads else 0
    losses = [x[0] - x[0]] * count
    for place, (first, second) in enumerate(pairs):
        losses[first] = losses[first] + less[place]
        losses[second] = losses[second] + (one - less[place])
    return (yield from is_zero(party, kernels.stack(losses, 0)))


def _add_noise(x: Array) -> Array:
    if getattr(x, "is_meta", False):  # A rehearsal, which has no values.
        return x
    return x + discrete_gaussian(STEPS, tuple(x.shape))
