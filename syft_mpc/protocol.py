"""Protocols: generators that one party runs, and the requests that they yield.

A protocol is written once, from the view of one party. It yields what it needs from the others and is resumed with the
answer, so it does not depend on how the parties communicate. ``run.py`` drives it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import signature
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from syft_core.features import FEATURES
from syft_core.registry import Registry
from syft_mpc.kernels import LONG, RINGS, Array, Kernels, Shape, dtype_name, size_of
from syft_mpc.prg import Stream


class Spec(NamedTuple):
    """The form of an array of a correlation. Integers of the ring are shared by addition, all others by XOR."""

    shape: Shape
    dtype: str = "int64"

    @property
    def is_additive(self) -> bool:
        """Whether the shares of the array add up to its value, instead of XOR."""
        return self.dtype in RINGS

    def expand(self, kernels: Kernels, stream: Stream) -> Array:
        """Return an array of this form with the next random numbers of a stream."""
        return kernels.expand(stream, self.dtype, self.shape)

    def subtract(self, _kernels: Kernels, x: Array, y: Array) -> Array:
        """Return x - y: the other share of x, if y is one."""
        return x - y


def spec_of(x: Array) -> Spec:
    """Return the form of an array, or of the array behind a pointer."""
    return Spec(tuple(x.shape), dtype_name(x))


DealtForms: TypeAlias = tuple[tuple[Spec, ...], tuple[Spec, ...]]


def expand(kernels: Kernels, stream: Stream, specs: Sequence[Spec]) -> list[Array]:
    """Return arrays of these forms, with the next random numbers of a stream.

    Small arrays are parts of one buffer, each at a multiple of 8 bytes.
    """
    sizes = [-(-size_of(*spec) // 8) * 8 for spec in specs]
    if sum(sizes) >= LONG or any(type(spec) is not Spec for spec in specs):  # Subclasses have other distributions.
        return [spec.expand(kernels, stream) for spec in specs]
    buffer, start, arrays = memoryview(stream.take(sum(sizes))), 0, []
    for spec, size in zip(specs, sizes, strict=True):
        arrays.append(kernels.from_bytes(buffer[start : start + size_of(*spec)], spec.dtype, spec.shape))
        start += size
    return arrays


class Correlation:
    """Random values that fit together, such as a product and its factors: one share for each party.

    A subclass is a frozen dataclass, whose fields describe the forms. The free arrays are uniformly random: every party
    expands its share from the seed that it shares with the provider. ``derive`` computes the dependent arrays from
    them. All parties but the first expand these from their seeds too, so the provider sends one correction to the first
    party, and nothing to the others.
    """

    @cached_property
    def forms(self) -> DealtForms:
        """The forms of the free arrays, and those of the dependent ones."""
        raise NotImplementedError

    def kept(self) -> Sequence[tuple[int, Spec]]:
        """Return the numbers and forms of masks that the parties have kept from earlier runs, if it depends on them."""
        return ()

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute the dependent arrays from the free ones and the kept masks; only the provider knows the values."""
        raise NotImplementedError

    def bind(self, _mask: int) -> Correlation:
        """Return the same correlation for the kept mask of a number."""
        return self

    @cached_property
    def label(self) -> bytes:
        """Identifies the form of the correlation: each party counts how many of a form it has used."""
        return repr(self).encode()


# --- requests


@dataclass(slots=True)
class Open:
    """Send shares to all other parties; the answer is the list of the values: sums, or the XOR of other types."""

    shares: tuple[Array, ...]

    def __init__(self, *shares: Array) -> None:
        self.shares = shares


@dataclass(slots=True)
class OpenBits:
    """Send XOR shares to all other parties; the answer is the list of the values."""

    shares: tuple[Array, ...]

    def __init__(self, *shares: Array) -> None:
        self.shares = shares


@dataclass(slots=True, eq=False)
class Draw:
    """Use a correlation; the answer is the list of this party's shares of the free arrays."""

    correlation: Correlation
    rest: Any = None
    """State that the run needs for the dependent arrays, which ``Rest`` asks for."""


@dataclass(slots=True)
class Rest:
    """Wait for the dependent arrays of a correlation; the answer is the list of this party's shares.

    Ask for them as late as possible: the first party has to wait for the provider.
    """

    draw: Draw


@dataclass(slots=True, eq=False)
class Keep:
    """Keep this party's share of a mask, and the value opened under it, under the number of the run.

    Both are kept as long as ``handle`` is stored.
    """

    mask: Array
    opened: Array
    handle: Array


@dataclass(slots=True, eq=False)
class Recall:
    """Ask for the share of a mask that was kept under a number, and for what was opened under it.

    The run ends with an error unless they have the form of ``operand``.
    """

    number: int
    operand: Array


@dataclass(slots=True)
class Send:
    """Send arrays to one party, or to the provider (``PROVIDER``); the answer is None."""

    to: int
    arrays: tuple[Array, ...]


@dataclass(slots=True)
class Receive:
    """Wait for arrays of these forms, which a party or the provider sends; the answer is the tuple of them."""

    sender: int
    specs: tuple[Spec, ...]


@dataclass(slots=True)
class Common:
    """Random arrays that only two ranks know: by default, two parties. The provider may be one of them.

    They are fresh, unless there is a ``label``: then they are the same in every run of the group. See Note [Calls].
    """

    specs: tuple[Spec, ...]
    ranks: tuple[int, int] = (0, 1)
    label: bytes = b""


@dataclass(slots=True)
class Zeros:
    """Random shares of zeros, from seeds that pairs of parties share; nothing is sent."""

    specs: tuple[Spec, ...]


@dataclass(slots=True)
class Verify:
    """The result of checking what a party sent; if it is false, the run ends with an error that names the party."""

    sender: int
    passed: bool


Need: TypeAlias = Open | OpenBits | Draw | Rest | Keep | Recall | Send | Receive | Common | Zeros | Verify
Steps: TypeAlias = Generator[Need, Any, Any]
"""A running protocol: it yields requests and returns one share, or a tuple of shares."""
PROVIDER = -1
MASKING = "spdz_mask"
"""The protocol in which the parties keep a mask."""
MASK = "mask"
"""The option of protocols that use a kept mask: the number of the run that kept it."""


@dataclass(frozen=True)
class Role:
    """Who runs a protocol: one of ``count`` parties, or the provider with rank ``PROVIDER``."""

    rank: int
    count: int
    kernels: Kernels

    @property
    def leads(self) -> bool:
        """Whether this is the first party, which adds public values to its share."""
        return self.rank == 0

    @property
    def helps(self) -> bool:
        """Whether this is the provider, in a protocol with a role for it."""
        return self.rank == PROVIDER


Cost: TypeAlias = Callable[..., int]


@dataclass(frozen=True)
class Protocol:
    """An entry of the table of protocols. A worker runs nothing else for a client."""

    name: str
    function: Callable[..., Steps]
    rounds: int | Cost
    """Number of times that the parties wait for each other; a function if it depends on the shapes and options."""
    sends: int | Cost
    """The bytes that each party sends to each other party: per element of the first argument, or a function.

    If the provider takes part, the bytes that it and the parties send in total, without corrections."""
    opens: str
    """What the parties see in the clear, and why it reveals nothing."""
    uses: str
    """The correlations it uses up."""
    parties: int | None = None
    """The number of parties it needs; None if it is right for any number."""
    has_helper: bool = False
    """Whether the provider takes part, instead of only dealing correlations."""
    reveals: bool = False
    """Whether the parties learn a value, so that each of them must permit it."""
    informs_client: bool = False
    """Whether the provider stores its own result, for the client."""
    keeps_mask: bool = False
    """Whether the parties keep a mask of the form of the first operand."""
    by_line: bool = False
    """Whether it computes each line of its operand independently: each element, or each line along the option
    ``axis``."""
    checks_operands: bool = False
    """Whether it fails if the operands do not fit together, so that its success reveals something about them."""
    accuses: bool = False
    """Whether it names parties that cheat: then messages prove who sent them, and for which call."""
    protects: bool = False
    """Whether it limits what its result reveals, for instance with noise: owners are shown that it computed it."""

    @cached_property
    def flags(self) -> frozenset[str]:
        """The names of the options that are True or False."""
        found = signature(self.function).parameters.values()
        return frozenset([parameter.name for parameter in found if parameter.annotation in (bool, "bool")])


def _load(name: str) -> bool:
    """Load the protocols of this package, and of the feature that offers one of this name."""
    return any([FEATURES.load_type(Protocol), FEATURES.load("protocol", name)])


PROTOCOLS: Registry[str, Protocol] = Registry(
    "protocols", advice="register it with `@protocol` in syft_mpc", load=_load
)


def protocol(*, prefix: str = "", **facts: Any) -> Callable[[Callable[..., Steps]], Callable[..., Steps]]:
    """Register a generator function as a protocol, with the facts that ``Protocol`` describes.

    A test compares its costs with those of a run.
    """

    def register(function: Callable[..., Steps]) -> Callable[..., Steps]:
        key = function.__name__ = prefix + function.__name__  # The name under which a client runs it.
        PROTOCOLS.register(key, Protocol(key, function, **facts))
        return function

    return register


# Note [Calls]
# ~~~~~~~~~~~~
# A client may start different protocols at different workers under the number of one run. Two that have random numbers
# in common must not use the same ones in different ways: one may reveal what is a mask at the other. So these numbers
# depend on the call: the protocol, the forms of its operands, and its options.


def describe_call(name: str, specs: Sequence[Spec], options: Mapping[str, Any]) -> bytes:
    """Return what identifies a call; see Note [Calls]."""
    return repr((name, *specs, *sorted(options.items()))).encode()


# --- composition


def together(*protocols: Steps) -> Steps:
    """Run protocols side by side: what they open at the same time is opened in one round. Returns their results."""
    results: list[Any] = [None] * len(protocols)
    answers: dict[int, Any] = dict.fromkeys(range(len(protocols)))
    while answers:
        requests: dict[int, Open | OpenBits] = {}
        for place, answer in answers.items():
            try:
                request = protocols[place].send(answer)
                while not isinstance(request, Open | OpenBits):
                    request = protocols[place].send((yield request))
                requests[place] = request
            except StopIteration as end:  # noqa: PERF203  # each of them ends in its own time
                results[place] = end.value
        if not requests:
            break
        opened = iter((yield Open(*[share for request in requests.values() for share in request.shares])))
        answers = {place: list(islice(opened, len(request.shares))) for place, request in requests.items()}
    return results


# --- rehearsal


class Rehearsal(NamedTuple):
    """The costs and the results of a run of a protocol, inferred from forms."""

    demands: tuple[Correlation, ...]
    results: tuple[Spec, ...]
    rounds: int
    sends: int
    """Bytes from each party to each other party."""


def rehearse(
    kernels: Kernels, name: str, specs: tuple[Spec, ...], options: tuple[tuple[str, Any], ...], count: int
) -> Rehearsal:
    """Run a protocol on blank arrays to find its costs and results, which are remembered for each signature."""
    mask = next((value for option, value in options if option == MASK), None)
    if mask is not None:  # Each number is used for a few runs only.
        found = rehearse(kernels, name, specs, tuple([pair for pair in options if pair[0] != MASK]), count)
        return found._replace(demands=tuple([_bind(demand, mask) for demand in found.demands]))
    key = (kernels, name, specs, options, count)
    known = _rehearsals.get(key)
    if known is None:
        if len(_rehearsals) >= MAX_REHEARSALS:
            _rehearsals.clear()
        known = _rehearsals[key] = _rehearse(kernels, name, specs, options, count)
    return known


def _rehearse(
    kernels: Kernels, name: str, specs: tuple[Spec, ...], options: tuple[tuple[str, Any], ...], count: int
) -> Rehearsal:
    entry = PROTOCOLS[name]
    blanks = [kernels.blank(*spec) for spec in specs]
    steps = entry.function(Role(0, count, kernels), *blanks, **dict(options))
    demands: list[Correlation] = []
    rounds = sends = 0
    answer: Any = None
    try:
        while True:
            request = steps.send(answer)
            answer = None
            if isinstance(request, Open | OpenBits):
                rounds += 1
                sends += sum(size_of(*spec_of(x)) for x in request.shares)
                answer = list(request.shares)
            elif isinstance(request, Draw):
                demands.append(request.correlation)
                answer = [kernels.blank(*spec) for spec in request.correlation.forms[0]]
            elif isinstance(request, Rest):
                answer = [kernels.blank(*spec) for spec in request.draw.correlation.forms[1]]
            elif isinstance(request, Recall):
                answer = [kernels.blank(*spec_of(request.operand))] * 2
            elif isinstance(request, Common | Zeros | Receive):
                answer = [kernels.blank(*spec) for spec in request.specs]
    except StopIteration as end:
        results = end.value if isinstance(end.value, tuple) else (end.value,)
    if entry.has_helper:  # The roles differ, so one of them does not show the costs.
        rounds, sends = (
            cost if isinstance(cost, int) else cost(*specs, **dict(options)) for cost in (entry.rounds, entry.sends)
        )
    return Rehearsal(tuple(demands), tuple(map(spec_of, results)), rounds, sends)


@lru_cache(maxsize=4096)
def _bind(correlation: Correlation, mask: int) -> Correlation:
    return correlation.bind(mask)


MAX_REHEARSALS = 4096
_rehearsals: dict[Any, Rehearsal] = {}
