"""Rules of an owner for sums: which results may leave, in a sum of how many workers, to whom and how often.

A rule is a table of conditions, all of which must hold; ``CONDITIONS`` has one entry for each key. What the rule wants
of a result is read from its maker, which the worker itself has written.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from syft_core.conditions import DAY, read_count, read_moment, read_tags, read_text, read_until
from syft_core.exceptions import suggest
from syft_core.peer import Peer
from syft_core.registry import Registry
from syft_core.values import Json, Table
from syft_core.workers.party.derivations import Derivation, Maker
from syft_sums.errors import SumRuleError
from syft_sums.keys import read_fingerprint, write_fingerprint
from syft_sums.roster import MAX_MEMBERS, Roster

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
WEIGHTS = ("samples", "equal")
"""How the means of workers may be weighted in a sum."""
DEFAULTS: Mapping[str, Json] = {
    "at_least": 3,
    "colluding": 1,
    "changes": 2,
    "weights": WEIGHTS[0],
    "failures": "zeros",
}
REQUIRED = ("user", "computed_from")


class SumCandidate(NamedTuple):
    """What a client wants summed: for whom, how it was computed, the workers of the study, and their weights."""

    peer: Peer
    maker: Maker
    derivation: Derivation
    roster: Roster
    weights: str = WEIGHTS[0]
    free: tuple[str, ...] = ()
    """The supplied inputs that may be anything, besides the weights of a training."""

    def option(self, name: str) -> Json:
        """Return an option of the maker, or None."""
        return dict(self.maker.options).get(name)


@dataclass(frozen=True)
class SumCondition:
    """One key of a rule.

    ``read`` returns the value of the key as JSON can express it, or raises ``ValueError`` with the reason; ``refuse``
    returns why something is not covered, or None; ``text`` describes the condition.
    """

    read: Callable[[Json], Json]
    refuse: Callable[[Json, SumCandidate], str | None]
    text: Callable[[Json], str]


CONDITIONS: Registry[str, SumCondition] = Registry("conditions of sums", advice="choose another key")


@dataclass(eq=False)
class SumRule:
    """A rule of the owner for sums."""

    name: str
    conditions: Table
    made_by: str = ""
    is_configured: bool = False
    uses: dict[str, float] = field(default_factory=dict)
    """When it was used, by the id of the use: one for each round."""

    def __getitem__(self, name: str) -> Json:
        return self.conditions.get(name)

    @property
    def has_noise(self) -> bool:
        """Whether results need noise."""
        return self["noise"] is not None

    @property
    def hides_among(self) -> int:
        """Among how many workers a sum hides each update, if the client works together with all that may collude."""
        return int(self["at_least"]) - int(self["colluding"])

    def refuse(self, candidate: SumCandidate, use: str = "") -> str | None:
        """Return why something is not covered, or None; a ``use`` that was counted is not counted again."""
        if use not in self.uses and (why := self._refuse_use()) is not None:
            return why
        candidate = candidate._replace(free=tuple(self["free"] or ()))
        for key, value in self.conditions.items():
            if (why := CONDITIONS[key].refuse(value, candidate)) is not None:
                return why
        return None if self["programs"] or self["any_program"] or self.has_noise else "it approves no program"

    def _refuse_use(self) -> str | None:
        now = time.time()
        if (most := self["count"]) is not None and len(self.uses) >= most:
            return f"all of its {most} uses are used up"
        if (most := self["per_day"]) is not None and sum(when >= now - DAY for when in self.uses.values()) >= most:
            return f"it was used {most} times within 24 hours"
        if (until := self["until"]) is not None and now >= read_moment(until):
            return f"it expired on {until}"
        return None

    def describe(self) -> str:
        """Return the conditions in words."""
        return "; ".join(filter(None, [CONDITIONS[key].text(value) for key, value in self.conditions.items()]))

    def to_table(self) -> Table:
        """Return the rule and its uses, as JSON can express them."""
        return {"name": self.name, **self.conditions, "used": len(self.uses), "hides_among": self.hides_among}


def read_conditions(name: str, table: Mapping[str, Json]) -> Table:
    """Return the conditions of a rule as JSON can express them; raise ``SumRuleError`` if one is wrong."""

    def require(holds: object, why: str) -> None:
        if not holds:
            raise SumRuleError.condition(name, why)

    require(_NAME.fullmatch(name), "a name is 1 to 64 letters, digits, dots, dashes and underscores")
    for key in table:
        hint = suggest(key, CONDITIONS, f"choose from {', '.join(CONDITIONS)}")
        require(key in CONDITIONS, f"there is no condition {key!r} ({hint})")
    for key in REQUIRED:
        require(key in table, f"{key!r} is missing")
    read: Table = {}
    for key, condition in CONDITIONS.items():
        given = table.get(key, DEFAULTS.get(key))
        if given is not None:
            try:
                read[key] = condition.read(given)
            except ValueError as error:
                raise SumRuleError.condition(name, f"{key} {error}") from None
    at_least, colluding = read["at_least"], read["colluding"]
    require(
        at_least - colluding >= 2,
        f"at_least = {at_least} with colluding = {colluding} would hide a result among {at_least - colluding}",
    )
    require(
        read.get("programs") or read.get("any_program") or "noise" in read,
        "it has neither programs nor noise, so a client may choose a program whose sum is one record; name the "
        "programs that you have looked at, or write any_program = true",
    )
    require("free" not in read or "programs" in read, "free names inputs of programs, and there are none")
    require("noise" not in read or "clip" in read, "noise needs clip, the largest norm of an update")
    require(read.get("per_day", 0) <= read.get("count", 2**31), "per_day contradicts count")
    return read


def read_members(members: Mapping[str, str | Sequence[str]]) -> dict[str, tuple[bytes, ...]]:
    """Return the keys of members, by name, given their fingerprints; raise ``SumRuleError`` if one is wrong."""
    found: dict[str, tuple[bytes, ...]] = {}
    for name, texts in members.items():
        try:
            found[name] = tuple(map(read_fingerprint, [texts] if isinstance(texts, str) else texts))
        except (TypeError, ValueError) as error:  # noqa: PERF203  # the error names the member
            raise SumRuleError.condition("members", f"{name!r} {error}") from None
    every = [key for keys in found.values() for key in keys]
    for key in every:
        if every.count(key) > 1:
            raise SumRuleError.condition("members", f"{write_fingerprint(key)} is listed twice")
    return found


# --- conditions


def _refuse_user(user: str, candidate: SumCandidate) -> str | None:
    return None if candidate.peer.user == user and not candidate.peer.behalf else f"it is for {user!r}"


def _refuse_data(tags: list[str], candidate: SumCandidate) -> str | None:
    """Refuse anything but whole published objects under one of the tags."""
    for operand in candidate.maker.operands:
        if not operand.is_whole:
            return "it was not computed from whole objects that this owner has published, each once, and nothing else"
        if not set(operand.tags) & set(tags):
            return f"it is for what was computed from {' and '.join(tags)}, and from no other data here"
    return None if candidate.maker.operands else f"it is for what was computed from {' and '.join(tags)}"


def _refuse_size(at_least: int, candidate: SumCandidate) -> str | None:
    size = candidate.roster.size
    return None if size >= at_least else f"the study has {size} workers, and the rule wants at least {at_least}"


def _refuse_colluding(most: int, candidate: SumCandidate) -> str | None:
    found = candidate.roster.colluding
    return None if found >= most else f"the study assumes that {found} workers may collude, and the rule {most}"


def _refuse_weights(wanted: str, candidate: SumCandidate) -> str | None:
    if candidate.weights == wanted:
        return None
    why = "from the sums of one list with both, the result of each worker can be computed"
    return f"its weights are {candidate.weights!r}, and the rule wants {wanted!r}: {why}"


def _refuse_rows(least: int, candidate: SumCandidate) -> str | None:
    samples = candidate.option("samples")
    return None if type(samples) is int and samples >= least else f"it used fewer than {least} rows"


def _refuse_clip(most: float, candidate: SumCandidate) -> str | None:
    clip = read_privacy(candidate.maker).get("clip", candidate.option("clip"))
    if candidate.maker.protocol != "train" or (isinstance(clip, int | float) and clip <= most):
        return None
    return f"its norm may be larger than the {most:g} of the rule: train with `clip={most:g}`"


def _refuse_program(digests: list[str], candidate: SumCandidate) -> str | None:
    if candidate.derivation.find_program(candidate.free) in digests:
        return None
    if candidate.option("privacy"):
        return "its program is not approved"
    return "its program is not approved, and the rule asks for no noise"


def _refuse_noise(noise: Table, candidate: SumCandidate) -> str | None:
    found = read_privacy(candidate.maker)
    if not found:
        return "it has no noise, and under this rule nothing exact leaves"
    if found.get("multiplier", 0.0) < noise["multiplier"]:
        return f"its noise multiplier is {found.get('multiplier')}, and the rule wants at least {noise['multiplier']}"
    if found.get("delta", 1.0) > noise["delta"]:
        return f"its delta is {found.get('delta')}, and the rule wants at most {noise['delta']}"
    return None


def read_privacy(maker: Maker) -> Table:
    """Return what a maker says about noise, by name; empty without noise. Epsilon includes all earlier trainings."""
    privacy = dict(maker.options).get("privacy")
    return dict(zip(_PRIVACY, privacy, strict=True)) if privacy else {}


_PRIVACY = ("clip", "multiplier", "rate", "steps", "delta", "epsilon")
"""What private training writes, in order."""


def _accept(_value: Json, _candidate: SumCandidate) -> None:
    return None


def _read_digests(value: Json) -> list[str]:
    if (
        not isinstance(value, list | tuple)
        or not value
        or not all(type(each) is str and _DIGEST.fullmatch(each) for each in value)
    ):
        raise ValueError("must be a list of digests of 64 hexadecimal digits, as requests show them")
    return sorted(set(value))


def _read_names(value: Json) -> list[str]:
    if not isinstance(value, list | tuple) or not value or not all(type(each) is str and each for each in value):
        raise ValueError(f"must be a list of names of supplied inputs, as requests show them, not {value!r}")
    return sorted(set(value))


def _read_number(least: int, most: int) -> Callable[[Json], int]:
    def read(value: Json) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most}, not {value!r}")
        return value

    return read


def _read_size(value: Json) -> float:
    if type(value) not in (int, float) or not 0 < value < float("inf"):
        raise ValueError(f"must be a number above 0, not {value!r}")
    return float(value)


def _read_flag(value: Json) -> bool:
    if value is not True:
        raise ValueError(f"must be true, or be left out, not {value!r}")
    return True


def _read_noise(value: Json) -> Table:
    names = ("multiplier", "delta", "epsilon")
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise ValueError("must have multiplier, delta and epsilon")
    return {name: _read_size(value[name]) for name in names}


def _read_weights(value: Json) -> str:
    if value not in WEIGHTS:
        raise ValueError(f"must be 'samples' or 'equal', not {value!r}")
    return str(value)


def _read_failures(value: Json) -> str:
    if value not in ("zeros", "visible"):
        raise ValueError(f"must be 'zeros' or 'visible', not {value!r}")
    return str(value)


def _describe_program(digests: list[str]) -> str:
    return f"by {'one program' if len(digests) == 1 else f'{len(digests)} programs'} that you have approved"


CONDITIONS.update(
    {
        "user": SumCondition(read_text, _refuse_user, lambda user: f"{user} may have sums"),
        "at_least": SumCondition(
            _read_number(2, MAX_MEMBERS), _refuse_size, lambda n: f"of at least {n} workers, this one included"
        ),
        "colluding": SumCondition(
            _read_number(0, MAX_MEMBERS), _refuse_colluding, lambda n: f"of which {n} may collude"
        ),
        "computed_from": SumCondition(read_tags, _refuse_data, lambda tags: f"computed from {', '.join(tags)}"),
        "rows_at_least": SumCondition(read_count, _refuse_rows, lambda n: f"with at least {n} rows"),
        "clip": SumCondition(_read_size, _refuse_clip, lambda clip: f"each with a norm of at most {clip:g}"),
        "changes": SumCondition(
            _read_number(0, 2**31 - 1), _accept, lambda n: f"over at most {n + 1} different lists of workers"
        ),
        "weights": SumCondition(
            _read_weights, _refuse_weights, lambda how: "each worker with the same weight" if how == "equal" else ""
        ),
        "programs": SumCondition(_read_digests, _refuse_program, _describe_program),
        "free": SumCondition(_read_names, _accept, lambda names: f"with any {', '.join(names)}"),
        "any_program": SumCondition(
            _read_flag, _accept, lambda _v: "by any program: a sum can then be made to show one record"
        ),
        "noise": SumCondition(
            _read_noise,
            _refuse_noise,
            lambda n: f"with noise: multiplier {n['multiplier']:g}, epsilon {n['epsilon']:g} at delta {n['delta']:g}",
        ),
        "failures": SumCondition(
            _read_failures, _accept, lambda how: "a failure is visible" if how == "visible" else ""
        ),
        "count": SumCondition(read_count, _accept, lambda most: f"up to {most} rounds"),
        "per_day": SumCondition(read_count, _accept, lambda most: f"at most {most} within 24 hours"),
        "until": SumCondition(read_until, _accept, lambda until: f"until {until}"),
    }
)
