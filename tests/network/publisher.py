"""A worker that keeps objects on disk, and a client that publishes, changes and removes them until it is killed.

Prints a line after each acknowledgement. Start it with ``python -m tests.network.publisher FOLDER FIRST``.
"""

from __future__ import annotations

import sys

import numpy as np

from syft_core.workers.party.virtual import VirtualWorker
from syft_numpy.hook import NumpyHook
from syft_worker.storage import Storage

SIZE = 5_000


def main(folder: str, first: int) -> None:
    with NumpyHook(np) as hook:
        hook.local_worker.user = "eve"
        bob = VirtualWorker(hook, id="bob", serialize=True)
        Storage(folder, bob)
        found = bob.search("#counter")
        counter = found[0] if found else hook.zeros(SIZE).tag("#counter").send(bob).publish()
        held = []
        for number in range(first, first + 10_000):
            hook.full(SIZE, number).tag(f"#object-{number}").send(bob).publish()
            tell("published", number)
            counter += 1
            tell("counted")
            held.append(hook.full(SIZE, number).tag(f"#held-{number}").send(bob))
            tell("tagged", number)
            if len(held) > 2:
                held.pop(0).get()
                tell("fetched", number - 2)


def tell(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201  # the test reads it


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
