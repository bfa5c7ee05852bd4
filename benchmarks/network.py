"""Measure workers on a network: ``python benchmarks/network.py [--rounds N] [--load] [--update]``.

Every server runs in a process of its own on this machine. Four questions: what does waiting for a worker cost, compared
with a bare echo of the library ``websockets``; how many operations does a client send that does not wait; how much does
distance slow down an epoch of training; and does one worker hold 200 clients.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from queue import SimpleQueue
from statistics import median
from threading import Thread
from time import perf_counter
from typing import Any

import network_servers as servers
import torch
from measure import Comparison, compare, machine, table, update_readme, verdict
from worker_workloads import Epoch, FederatedEpoch, FetchOnceEpoch, PlannedEpoch

from syft_core.network.client import WebsocketClientWorker
from syft_core.network.connection import Connection, Envelope, Purpose
from syft_core.workers.party.virtual import VirtualWorker
from syft_torch.hook import TorchHook

SMALL = b"e" * 100
"""About as many bytes as the message that waits for a worker."""
STORE = servers.STORE + servers.BIG
TRIPS, ADDITIONS = 100, 10_000
WAIT_LIMIT, TRANSFER_LIMIT, DELAY_LIMIT, PLAN_LIMIT, WIRE_PLAN_LIMIT = 1.5, 0.7, 1.5, 1.3, 2.0
RATE_LIMIT, DELAY = 15_000, 0.020
CLIENTS, OPERATIONS, CLIENT_PROCESSES = 200, 500, 4
PLAIN: dict[str, Any] = {"compression": None, "max_size": None, "ping_interval": None, "proxy": None}
Exchange = Callable[[bytes, int], float]
"""Sends a message so often, waiting for each answer; returns the seconds of one."""


def main() -> None:
    options = parse()
    logging.disable(logging.WARNING)  # Nothing here is encrypted.
    torch.set_num_threads(1)
    hook = TorchHook(torch)
    hook.attributes.warm_up()
    with ExitStack() as stack:
        bob, alice = (stack.enter_context(servers.start(servers.serve_worker, id)) for id in ("bob", "alice"))
        parts = [] if options.load else list(report(hook, bob, alice, options.rounds))
        parts += [*report_load(bob), f"{machine()}, torch {torch.__version__}, one thread."]
    text = "\n\n".join(parts)
    print(text)
    if options.update:
        update_readme("network", text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25, help="rounds of A B B A per comparison (25)")
    parser.add_argument("--load", action="store_true", help="measure the load of many clients only")
    parser.add_argument("--update", action="store_true", help="write the tables into benchmarks/README.md")
    options = parser.parse_args()
    if options.load and options.update:
        parser.error("--update writes all tables; leave --load out")
    return options


def report(hook: Any, bob: servers.Running, alice: servers.Running, rounds: int) -> Iterator[str]:
    far, other = (connect(hook, server.port) for server in (bob, alice))
    with open_bare() as bare:
        yield "**Bare servers**: an echo of 100 bytes, and 8 MB there or back"
        yield table(["", "echo µs", "send 8 MB ms", "get 8 MB ms"], bare_rows(bare, rounds))
        yield "**Waiting for a worker**, compared with a bare server of `websockets` (threads)"
        yield table(["", "bare ms", "ours ms", "ratio", "95 %", "target", ""], waiting_rows(far, bare, rounds))
    yield "**Not waiting**: 10,000 additions of pointers, 10 elements, then one wait"
    yield table(["", "in process /s", "network /s", "target", ""], [rate_row(hook, far, rounds)])
    yield "**One epoch of training, two workers**, each in a process of its own"
    with ExitStack() as stack:
        proxies = [stack.enter_context(servers.start(servers.serve_proxy, s.port, DELAY)) for s in (bob, alice)]
        distant = [connect(hook, proxy.port, VirtualWorker(hook, id=f"me{i}")) for i, proxy in enumerate(proxies)]
        rows = epoch_rows(hook, [far, other], distant, max(5, rounds // 3))
        yield table(["", "compared with", "ms", "ms", "ratio", "95 %", "target", ""], rows)
    for location in (far, other, *distant):
        location.close()


def connect(hook: Any, port: int, client: VirtualWorker | None = None) -> WebsocketClientWorker:
    user = "local" if client is None else str(client.id)
    return WebsocketClientWorker(hook, "127.0.0.1", port, token=user, client=client)


# --- bare servers


@contextmanager
def open_bare() -> Iterator[dict[str, Exchange]]:
    """Start all bare servers and connect to them."""
    opened = {
        "TCP": (servers.serve_tcp, open_tcp),
        "our frames, no worker": (servers.serve_frames, open_frames),
        "`websockets`, threads": (servers.serve_websockets, open_websockets),
        "`websockets`, asyncio": (servers.serve_websockets_asyncio, open_websockets_asyncio),
    }
    if all(map(importlib.util.find_spec, ("picows", "uvloop"))):
        opened["`picows`, uvloop"] = (servers.serve_picows, open_picows)
        opened["`picows`, called by another thread"] = (servers.serve_picows, open_picows_in_thread)
    with ExitStack() as stack:
        ports = {name: stack.enter_context(servers.start(serve)).port for name, (serve, _) in opened.items()}
        yield {name: connect(stack, ports[name]) for name, (_, connect) in opened.items()}


def open_tcp(stack: ExitStack, port: int) -> Exchange:
    sock = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(message: bytes, times: int) -> float:
        start = perf_counter()
        for _ in range(times):
            servers.send_tcp(sock, message)
            servers.receive_tcp(sock)
        return (perf_counter() - start) / times

    return exchange


def open_frames(stack: ExitStack, port: int) -> Exchange:
    sock = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = Connection(sock, is_client=True, max_bytes=1 << 30)

    def exchange(message: bytes, times: int) -> float:
        start = perf_counter()
        for number in range(times):
            connection.send(Envelope(Purpose.BATCH, number, 0), [message])
            connection.receive()
        return (perf_counter() - start) / times

    return exchange


def open_websockets(stack: ExitStack, port: int) -> Exchange:
    from websockets.sync.client import connect  # noqa: PLC0415

    connection = stack.enter_context(connect(f"ws://127.0.0.1:{port}", **PLAIN))

    def exchange(message: bytes, times: int) -> float:
        start = perf_counter()
        for _ in range(times):
            connection.send(message)
            connection.recv()
        return (perf_counter() - start) / times

    return exchange


def open_websockets_asyncio(stack: ExitStack, port: int) -> Exchange:
    from websockets.asyncio.client import connect  # noqa: PLC0415

    loop = asyncio.new_event_loop()

    opening = connect(f"ws://127.0.0.1:{port}", **PLAIN)
    connection = loop.run_until_complete(opening.__aenter__())
    stack.callback(loop.run_until_complete, opening.__aexit__(None, None, None))

    async def exchange(message: bytes, times: int) -> float:
        start = perf_counter()
        for _ in range(times):
            await connection.send(message)
            await connection.recv()
        return (perf_counter() - start) / times

    return lambda message, times: loop.run_until_complete(exchange(message, times))


def open_picows(stack: ExitStack, port: int) -> Exchange:
    import picows  # noqa: PLC0415
    import uvloop  # noqa: PLC0415

    loop = uvloop.new_event_loop()

    class Listener(picows.WSListener):
        """Sends the next message when an answer arrives, in the same callback, as picows is meant to be used."""

        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            frame.get_payload_as_bytes()
            self.left -= 1
            if self.left:
                transport.send(picows.WSMsgType.BINARY, self.message)
            else:
                self.done.set_result(None)

    transport, listener = loop.run_until_complete(
        picows.ws_connect(Listener, f"ws://127.0.0.1:{port}", max_frame_size=1 << 30)
    )

    async def exchange(message: bytes, times: int) -> float:
        listener.message, listener.left, listener.done = message, times, loop.create_future()
        start = perf_counter()
        transport.send(picows.WSMsgType.BINARY, message)
        await listener.done
        return (perf_counter() - start) / times

    return lambda message, times: loop.run_until_complete(exchange(message, times))


def open_picows_in_thread(stack: ExitStack, port: int) -> Exchange:
    """Run the event loop in a second thread, as a synchronous program must that uses this library."""
    import picows  # noqa: PLC0415
    import uvloop  # noqa: PLC0415

    loop, answers = uvloop.new_event_loop(), SimpleQueue[bytes]()

    class Listener(picows.WSListener):
        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            answers.put(frame.get_payload_as_bytes())

    opening = picows.ws_connect(Listener, f"ws://127.0.0.1:{port}", max_frame_size=1 << 30)
    Thread(target=loop.run_forever, daemon=True).start()
    transport, _ = asyncio.run_coroutine_threadsafe(opening, loop).result()
    stack.callback(loop.call_soon_threadsafe, loop.stop)

    def exchange(message: bytes, times: int) -> float:
        start = perf_counter()
        for _ in range(times):
            loop.call_soon_threadsafe(transport.send, picows.WSMsgType.BINARY, message)
            answers.get()
        return (perf_counter() - start) / times

    return exchange


def bare_rows(bare: dict[str, Exchange], rounds: int) -> Iterator[list[str]]:
    """Measure the bare servers in turns."""
    found: dict[str, list[list[float]]] = {name: [[], [], []] for name in bare}
    for _ in range(rounds):
        for name, exchange in bare.items():
            for times, message, count in zip(found[name], (SMALL, STORE, servers.FETCH), (TRIPS, 2, 2), strict=True):
                times.append(exchange(message, count))
    for name, (small, store, fetch) in found.items():
        yield [name, f"{median(small) * 1e6:.0f}", f"{median(store) * 1e3:.1f}", f"{median(fetch) * 1e3:.1f}"]


# --- one worker


def waiting_rows(far: WebsocketClientWorker, bare: dict[str, Exchange], rounds: int) -> Iterator[list[str]]:
    big = torch.rand(len(servers.BIG) // 4)
    exchange = bare["`websockets`, threads"]

    def flush() -> float:
        start = perf_counter()
        for _ in range(TRIPS):
            far.flush()
        return (perf_counter() - start) / TRIPS

    def get() -> float:
        pointers = [torch.rand(10).send(far) for _ in range(TRIPS)]
        far.flush()
        start = perf_counter()
        for pointer in pointers:
            pointer.get()
        return (perf_counter() - start) / TRIPS

    def send_big() -> float:
        start = perf_counter()
        pointer = big.send(far)
        far.flush()
        found = perf_counter() - start
        del pointer
        far.flush()
        return found

    def get_big() -> float:
        pointer = big.send(far)
        far.flush()
        start = perf_counter()
        pointer.get()
        return perf_counter() - start

    for name, ours in (("round trip: `location.flush()`", flush), ("`get` of 10 floats", get)):
        found = compare(lambda: exchange(SMALL, TRIPS), ours, rounds)
        yield [name, *figures(found), f"≤ {WAIT_LIMIT}", verdict(found.ratio, WAIT_LIMIT)]
    for name, ours, message in (("`send` of 8 MB", send_big, STORE), ("`get` of 8 MB", get_big, servers.FETCH)):
        found = compare(ours, lambda message=message: exchange(message, 1), rounds)
        row = [name, milli(found.b), milli(found.a), f"**{found.ratio:.2f}** of its speed", found.interval()]
        yield [*row, f"≥ {TRANSFER_LIMIT}", verdict(-found.ratio, -TRANSFER_LIMIT)]


def rate_row(hook: Any, far: WebsocketClientWorker, rounds: int) -> list[str]:
    near = VirtualWorker(hook, id="in process", serialize=False)

    def add(worker: Any) -> float:
        x = torch.rand(10).send(worker)
        start = perf_counter()
        for _ in range(ADDITIONS):
            x + x
        if worker is far:
            far.flush()
        return (perf_counter() - start) / ADDITIONS

    found = compare(lambda: add(near), lambda: add(far), max(3, rounds // 5))
    target = min(RATE_LIMIT, 0.5 / found.a)
    row = ["`x + x`", f"{1 / found.a:,.0f}", f"**{1 / found.b:,.0f}**", f"≥ {target:,.0f}"]
    return [*row, verdict(found.b, 1 / target)]


# --- training


def epoch_rows(hook: Any, close: list[Any], distant: list[Any], rounds: int) -> Iterator[list[str]]:
    local, once, federated = Epoch(None, None), FetchOnceEpoch(*close), FederatedEpoch(*close)
    here = [VirtualWorker(hook, id=f"{name} here", serialize=False) for name in ("bob", "alice")]
    yield epoch_row("as in the tutorials, served, loopback", "local data", compare(local, Epoch(*close), rounds), None)
    yield epoch_row(
        "one model, worker after worker, served, loopback", "local data", compare(local, once, rounds), None
    )
    delayed = compare(once, FetchOnceEpoch(*distant), rounds)
    yield epoch_row("one model, worker after worker, served, 20 ms each way", "no delay", delayed, None)
    yield epoch_row("a model per worker, served, loopback", "local data", compare(local, federated, rounds), None)
    delayed = compare(federated, FederatedEpoch(*distant), rounds)
    yield epoch_row("a model per worker, served, 20 ms each way", "no delay", delayed, DELAY_LIMIT)
    yield epoch_row(
        "a plan per step, in process", "local data", compare(local, PlannedEpoch(*here), rounds), PLAN_LIMIT
    )
    planned = compare(local, PlannedEpoch(*close), rounds)
    yield epoch_row("a plan per step, served, loopback", "local data", planned, WIRE_PLAN_LIMIT)
    planned = compare(local, PlannedEpoch(*distant), rounds)
    yield epoch_row("a plan per step, served, 20 ms each way", "local data", planned, None)


def epoch_row(name: str, base: str, found: Comparison, limit: float | None) -> list[str]:
    target = ["-", "-"] if limit is None else [f"≤ {limit}", verdict(found.ratio, limit)]
    return [name, base, *figures(found), *target]


def figures(found: Comparison) -> list[str]:
    return [milli(found.a), milli(found.b), f"**{found.ratio:.2f}**", found.interval()]


def milli(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}" if seconds < 1e-3 else f"{seconds * 1e3:.1f}"


# --- load


def report_load(server: servers.Running) -> Iterator[str]:
    yield f"**Load**: {CLIENTS} clients of {OPERATIONS} operations each, all at once, in {CLIENT_PROCESSES} processes"
    with ExitStack() as stack:
        share = CLIENTS // CLIENT_PROCESSES
        crowds = [stack.enter_context(start_crowd(server.port, i, share)) for i in range(CLIENT_PROCESSES)]
        memory, rows = [server.memory()], []
        for number in range(1, 4):
            start = perf_counter()
            for crowd in crowds:
                crowd.send(OPERATIONS)
            wrong = sum(crowd.recv() for crowd in crowds)
            seconds = perf_counter() - start
            memory.append(server.memory())
            rate, growth = CLIENTS * OPERATIONS / seconds, memory[-1] / memory[-2] - 1
            checked = [str(wrong), "0", verdict(wrong, 0)]
            flat = ["-", "-"] if number == 1 else ["≤ 1 %", verdict(growth, 0.01)]
            rows.append([str(number), f"{rate:,.0f}", *checked, f"{memory[-1]:.0f}", f"{growth:+.1%}", *flat])
    heads = ["round", "operations /s", "errors or wrong results", "target", "", "memory MB", "growth", "target", ""]
    yield table(heads, rows)


@contextmanager
def start_crowd(port: int, number: int, size: int) -> Iterator[Any]:
    """Start a process with clients; it takes a number of operations, and returns how many clients failed."""
    context = get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=run_crowd, args=(theirs, port, number, size), daemon=True)
    process.start()
    theirs.close()
    try:
        mine.recv()
        yield mine
    finally:
        mine.close()
        process.join(10)
        process.kill()


def run_crowd(pipe: Any, port: int, number: int, size: int) -> None:
    logging.disable(logging.WARNING)
    hook = TorchHook(torch)
    hook.attributes.warm_up()
    locations = [connect(hook, port, VirtualWorker(hook, id=f"client {number}-{i}")) for i in range(size)]
    pipe.send("connected")
    while True:
        try:
            operations = pipe.recv()
        except EOFError:
            return
        right: list[WebsocketClientWorker] = []
        threads = [Thread(target=count_up, args=(location, operations, right)) for location in locations]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pipe.send(size - len(right))


def count_up(location: WebsocketClientWorker, operations: int, right: list[WebsocketClientWorker]) -> None:
    """Execute operations on a worker and fetch the result now and then; note that all were right."""
    total = torch.zeros(10).send(location)
    for number in range(1, operations + 1):
        total += 1
        if number % 100 == 0 and (total * 1).get()[0] != number:
            return
    if (total.get() == operations).all():
        right.append(location)


if __name__ == "__main__":
    main()
