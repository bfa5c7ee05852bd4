"""Groups of parties without workers: channels of one process that are connected directly."""

from __future__ import annotations

import importlib
import pkgutil
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import syft_mpc as crypto
from syft_mpc.channel import Channel, start_protocol
from syft_mpc.kernels import dtype_name, size_of
from syft_mpc.numpy.kernels import NumpyKernels
from syft_mpc.protocol import PROTOCOLS, PROVIDER, Open, OpenBits, Receive, Role, Send, Spec, Steps, rehearse
from syft_mpc.run import Finish

for _module in pkgutil.iter_modules(crypto.__path__, f"{crypto.__name__}."):
    importlib.import_module(_module.name)  # It may register protocols.

CORE = {name for name, entry in PROTOCOLS.items() if entry.function.__module__.startswith(f"{crypto.__name__}.")}
"""The protocols of the core; features register others."""
Shares = list[Any]
View = Callable[[int, int, Any], None]
Alter = Callable[[int, int, Any], Any]


class Group:
    """``count`` parties and a provider. ``watch(sender, receiver, payload)`` sees everything that is sent.

    ``alter(sender, receiver, payload)``, if set, returns what arrives instead.
    """

    def __init__(self, count: int, kernels: Any, watch: View | None = None) -> None:
        self.kernels, self.count, self.number = kernels, count, 0
        self.alter: Alter | None = None
        self.provided: dict[int, Any] = {}
        """What the provider stores for the client, by the number of the run: also the handles of masks."""
        self._costs: Costs | None = None
        self.channels: dict[int, Channel] = {}
        names = [f"party {rank}" for rank in range(count)]
        for rank in (*reversed(range(count)), PROVIDER):
            self.channels[rank] = Channel(names, "provider", rank, kernels, self._make_post(rank, watch))
            self.channels[rank].share_seeds()

    def _make_post(self, sender: int, watch: View | None) -> Callable[[int, int, Any], None]:
        def post(receiver: int, number: int, payload: Any) -> None:
            if watch is not None and number:
                watch(sender, receiver, payload)
            if self.alter is not None and number and type(payload) is tuple:
                payload = self.alter(sender, receiver, payload)
            for run in self.channels[receiver].receive(sender, number, payload):
                run.advance()

        return post

    def share(self, values: np.ndarray) -> Shares:
        """Share integers, with fresh random numbers."""
        size = values.size * values.itemsize
        shares = [
            self.kernels.from_bytes(bytearray(secrets.token_bytes(size)), values.dtype.name, values.shape)
            for _ in range(self.count - 1)
        ]
        last = self.kernels.from_bytes(bytearray(values.tobytes()), values.dtype.name, values.shape)
        for share in shares:
            last = last - share
        return [*shares, last]

    def run(self, name: str, *operands: Shares, **options: Any) -> Any:
        """Run a protocol; return the shares of its result, or a list of them for several results."""
        results, errors = self.attempt(name, *operands, **options)
        for error in errors.values():
            raise error
        self.provided[self.number] = results.pop(PROVIDER, None)
        parties = [results[rank] for rank in range(self.count)]
        return [list(shares) for shares in zip(*parties, strict=True)] if isinstance(parties[0], tuple) else parties

    def attempt(self, name: str, *operands: Shares, **options: Any) -> tuple[dict[int, Any], dict[int, BaseException]]:
        """Run a protocol; return the results and the errors, by rank."""
        self.number += 1
        results: dict[int, Any] = {}
        errors: dict[int, BaseException] = {}

        def make_finish(rank: int) -> Finish:
            def finish(result: Any, error: BaseException | None) -> None:
                if error is None:
                    results[rank] = result
                else:
                    errors[rank] = error

            return finish

        specs = [Spec(tuple(shares[0].shape), dtype_name(shares[0])) for shares in operands]
        self._start(PROVIDER, name, specs, options, make_finish(PROVIDER))
        for rank in range(self.count):
            own = [shares[rank] for shares in operands]
            self._start(rank, name, own, options, make_finish(rank))
        return results, errors

    def prepare(self, name: str, specs: tuple[Spec, ...], times: int, **options: Any) -> None:
        """Let all roles prepare what a protocol needs ``times`` times."""
        self.number += 1
        demands = rehearse(self.kernels, name, specs, tuple(sorted(options.items())), self.count).demands
        for channel in self.channels.values():
            channel.prepare(self.number, demands, times)

    def measure(self, name: str, *operands: Shares, **options: Any) -> tuple[int, int]:
        """Run a protocol; return the length of its longest chain of messages, and the bytes that all roles sent."""
        self._costs = Costs()
        try:
            self.run(name, *operands, **options)
            return self._costs.rounds, self._costs.bytes
        finally:
            self._costs = None

    def _start(self, rank: int, name: str, operands: Sequence[Any], options: dict[str, Any], finish: Finish) -> None:
        channel, entry = self.channels[rank], PROTOCOLS[name]
        if self._costs is None or (rank == PROVIDER and not entry.has_helper):
            start_protocol(channel, self.number, name, operands, options, finish)
        else:
            arrays = operands if rank == PROVIDER else map(self.kernels.to_array, operands)
            steps = entry.function(channel.party, *arrays, **options)
            channel.start(self.number, self._costs.observe(channel.party, steps), finish)

    @staticmethod
    def open(shares: Shares) -> np.ndarray:
        """Return the values of shares."""
        total = shares[0]
        for share in shares[1:]:
            total = total + share
        return np.asarray(total)


class Costs:
    """Counts bytes, and rounds with a clock for each role: a message is one later than all that its sender has used."""

    def __init__(self) -> None:
        self.bytes = 0
        self._clocks: dict[int, int] = {}
        self._sent: dict[tuple[int, int], deque[int]] = {}

    @property
    def rounds(self) -> int:
        """The length of the longest chain of messages."""
        return max(self._clocks.values(), default=0)

    def observe(self, party: Role, steps: Steps) -> Steps:
        """Run the steps of a role, and count what it sends; corrections are not counted, they may be dealt before."""
        rank, answer = party.rank, None
        try:
            while True:
                request = steps.send(answer)
                others = [other for other in range(party.count) if other != rank]
                if isinstance(request, Open | OpenBits):
                    for other in others:
                        self._send(rank, other, request.shares)
                elif isinstance(request, Send):
                    self._send(rank, request.to, request.arrays)
                answer = yield request
                if isinstance(request, Open | OpenBits):
                    for other in others:
                        self._receive(other, rank)
                elif isinstance(request, Receive):
                    self._receive(request.sender, rank)
        except StopIteration as end:
            return end.value

    def _send(self, sender: int, receiver: int, arrays: Any) -> None:
        self.bytes += sum(size_of(tuple(x.shape), dtype_name(x)) for x in arrays)
        self._sent.setdefault((sender, receiver), deque()).append(self._clocks.get(sender, 0) + 1)

    def _receive(self, sender: int, receiver: int) -> None:
        sent = self._sent[sender, receiver].popleft()
        self._clocks[receiver] = max(self._clocks.get(receiver, 0), sent)


def make_kernels(framework: str) -> Any:
    """Return the kernels of a framework."""
    if framework == "numpy":
        return NumpyKernels()
    pytest.importorskip("torch")
    return pytest.importorskip("syft_mpc.torch.kernels").TorchKernels()
