"""Groups of parties without workers: channels of one process that are connected directly."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from syft_core.crypto import comparison, spdz, truncation  # noqa: F401  # registers protocols
from syft_core.crypto.kernels import dtype_name
from syft_core.crypto.protocol import PROVIDER, Spec
from syft_core.crypto.run import Channel, start_protocol

Shares = list[Any]
View = Callable[[int, int, Any], None]


class Group:
    """``count`` parties and a provider. ``watch(sender, receiver, payload)`` sees everything that is sent."""

    def __init__(self, count: int, kernels: Any, watch: View | None = None) -> None:
        self.kernels, self.count, self.number = kernels, count, 0
        self.channels: dict[int, Channel] = {}
        names = [f"party {rank}" for rank in range(count)]
        for rank in (*reversed(range(count)), PROVIDER):
            self.channels[rank] = Channel(names, "provider", rank, kernels, self._make_post(rank, watch))
            self.channels[rank].share_seeds()

    def _make_post(self, sender: int, watch: View | None) -> Callable[[int, int, Any], None]:
        def post(receiver: int, number: int, payload: Any) -> None:
            if watch is not None and number:
                watch(sender, receiver, payload)
            self.channels[receiver].receive(sender, number, payload)

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
        self.number += 1
        results: dict[int, Any] = {}

        def make_finish(rank: int) -> Callable[[Any, BaseException | None], None]:
            def finish(result: Any, error: BaseException | None) -> None:
                if error is not None:
                    raise error
                results[rank] = result

            return finish

        specs = [Spec(tuple(shares[0].shape), dtype_name(shares[0])) for shares in operands]
        start_protocol(self.channels[PROVIDER], self.number, name, specs, options, make_finish(PROVIDER))
        for rank in range(self.count):
            own = [shares[rank] for shares in operands]
            start_protocol(self.channels[rank], self.number, name, own, options, make_finish(rank))
        parties = [results[rank] for rank in range(self.count)]
        return [list(shares) for shares in zip(*parties, strict=True)] if isinstance(parties[0], tuple) else parties

    @staticmethod
    def open(shares: Shares) -> np.ndarray:
        """Return the values of shares."""
        total = shares[0]
        for share in shares[1:]:
            total = total + share
        return np.asarray(total)
