"""Nothing in the tests waits for ever: what waits has a deadline, and what polls uses ``wait_until``."""

from __future__ import annotations

import ast
import functools
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_for_end, wait_for_result, wait_until

ROOT = Path(__file__).parents[2]
WAITING = ROOT / "tests" / "waiting.py"
FILES = [path for folder in ("tests", "syft_core/testing") for path in sorted((ROOT / folder).rglob("*.py"))]

BLOCKING = {"join", "wait", "result", "exception", "acquire", "recv", "recv_bytes", "readline"}
"""Methods that wait as long as it takes if they are called without arguments."""
RUNNERS = {"run", "call", "check_call", "check_output"}
OPENERS = {"create_connection": 2, "HTTPConnection": 3, "HTTPSConnection": 3, "urlopen": 3, "select": 4}
"""Functions that take a timeout, with the number of arguments that include it."""
OWNERS = {"", "socket", "select", "http.client", "urllib.request", "request"}
"""The modules of those."""
QUEUES = {"Queue", "SimpleQueue", "LifoQueue", "PriorityQueue"}
_SUSPECT = re.compile(
    rf"\bwhile\b|\bsleep\(|subprocess|communicate|\.get\(\)|\b({'|'.join(BLOCKING | {*OPENERS, 'accept'})})\("
)
WRAPPERS = {"wait_for", "wait_for_result"}
"""Functions that give a deadline to what is called in their arguments."""

EXEMPT = {
    "tests/network/dangers.py: hang": "an owner's function that never returns",
    "tests/network/killed.py: serve": "the process of a worker, which tests kill",
    "tests/network/processes.py: run_worker": "the process of a worker, which ends when the test closes the pipe",
    "tests/network/proxy.py: _accept": "a thread that passes on bytes until the test closes the proxy",
    "tests/network/proxy.py: _send_later": "the same",
    "tests/syft_worker/test_accounts.py: test_a_rate_allows_a_burst_and_recovers": "`Bucket.wait` returns a number",
    "tests/transports/pipe.py: receive": "an example for users; each end of a pipe ends with the other",
    "tests/transports/pipe.py: run_worker": "the process of a worker, which ends when its clients close their pipes",
}
"""What waits without a deadline, by file and function, with the reason."""


def find_waits(source: str) -> Iterator[tuple[str, int, str]]:
    """Yield the function, the line and the description of each wait without a deadline."""
    if not _SUSPECT.search(source):
        return
    nodes = list(_walk(ast.parse(source)))
    queues = {name for _, node in nodes for name in _find_queues(node)}
    limited = {
        id(inner)
        for _, node in nodes
        if isinstance(node, ast.Call) and _name(node) in WRAPPERS
        for arg in node.args
        for inner in ast.walk(arg)
    }
    for function, node in nodes:
        if isinstance(node, ast.While | ast.For) and _polls(node):
            yield function, node.lineno, "polls by hand; use `wait_until`"
        elif isinstance(node, ast.Call) and id(node) not in limited and (what := _describe(node, queues, source)):
            yield function, node.lineno, what


def _walk(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield all nodes, each with the name of its innermost function."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        function, node = waiting.pop()
        yield function, node
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        waiting += [(inner, child) for child in ast.iter_child_nodes(node)]


def _polls(loop: ast.While | ast.For) -> bool:
    """Return whether a loop pauses until something has happened, or does nothing until then."""
    inside = list(_find_inside(loop.body))
    pauses = any(isinstance(node, ast.Call) and _name(node) == "sleep" for node in inside)
    if isinstance(loop, ast.For):
        return pauses and any(isinstance(node, ast.Break | ast.Return) for node in inside)
    reads = any(isinstance(node, ast.Call) and _name(node) == "recv" for node in ast.walk(loop.test))
    return pauses or (all(isinstance(each, ast.Pass | ast.Continue) for each in loop.body) and not reads)


def _find_inside(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of a loop, except those of loops and functions inside it."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.While | ast.For | ast.FunctionDef):
            yield node
            waiting += ast.iter_child_nodes(node)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _find_queues(node: ast.AST) -> Iterator[str]:
    """Yield the names and attributes that a queue is assigned to."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from [ast.unparse(target) for target in targets if _name(node.value) in QUEUES]


def _describe(call: ast.Call, queues: set[str], source: str) -> str | None:
    """Return what is wrong with a call, if it waits without a deadline."""
    name, named = _name(call), {keyword.arg for keyword in call.keywords}
    if named & {"timeout", "seconds", "blocking", None}:
        return None
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    is_bare = owner and not call.args
    waits = (
        (name in RUNNERS and owner == "subprocess")
        or (name == "communicate" and owner)
        or (len(call.args) < OPENERS.get(name, 0) and owner in OWNERS)
        or (is_bare and (name in BLOCKING or (name == "get" and owner in queues)))
        or (is_bare and name == "accept" and f"{owner}.settimeout(" not in source)
    )
    return f"`{ast.unparse(call.func)}` without a timeout" if waits else None


@functools.cache
def find_all() -> list[tuple[str, str, int, str]]:
    """Return the file, the function, the line and the description of each wait without a deadline."""
    files = [path for path in FILES if path != WAITING]
    return [
        (path.relative_to(ROOT).as_posix(), *found)
        for path in files
        for found in find_waits(path.read_text(encoding="utf-8"))
    ]


def test_what_waits_has_a_deadline() -> None:
    found = [
        f"{name}:{line}: {what}" for name, function, line, what in find_all() if f"{name}: {function}" not in EXEMPT
    ]

    assert len(FILES) > 300
    assert found == []


def test_every_exemption_is_needed() -> None:
    assert set(EXEMPT) - {f"{name}: {function}" for name, function, _, _ in find_all()} == set()


@pytest.mark.parametrize(
    "wrong",
    [
        "while not done: time.sleep(0.1)",
        "while not done: pass",
        "while not done: continue",
        "for _ in range(100):\n    if done: break\n    sleep(0.1)",
        "async def f():\n    while not done: await asyncio.sleep(0)",
        "thread.join()",
        "event.wait()",
        "process.wait()",
        "future.result()",
        "process.communicate()",
        "process.communicate('words')",
        "answers = queue.Queue()\nanswers.get()",
        "self.answers: Any = SimpleQueue()\nself.answers.get()",
        "lock.acquire()",
        "pipe.recv()",
        "process.stdout.readline()",
        "listener.accept()",
        "subprocess.run(['true'], check=True)",
        "socket.create_connection(('127.0.0.1', 80))",
        "select.select([a], [], [])",
    ],
)
def test_a_wait_without_a_deadline_is_found(wrong: str) -> None:
    assert len(list(find_waits(wrong))) == 1


@pytest.mark.parametrize(
    "right",
    [
        "wait_until(lambda: done)",
        "while sock.recv(4096): pass",
        "for pause in pauses: time.sleep(pause)",
        "thread.join(60)",
        "', '.join(words)",
        "p.get()",
        "wait_for_result(lambda: process.stdout.readline())",
        "await asyncio.wait_for(left.wait(), 60)",
        "listener.settimeout(60)\nlistener.accept()",
        "lock.acquire(blocking=False)",
    ],
)
def test_a_wait_with_a_deadline_is_not_found(right: str) -> None:
    assert list(find_waits(f"async def f():\n    {right}" if "await" in right else right)) == []


# --- the functions that wait


def test_a_condition_is_asked_until_it_is_true() -> None:
    answers = iter([0, "", None, "yes", "later"])

    assert wait_until(lambda: next(answers), pause=0) == "yes"


def test_a_condition_that_stays_false_fails_and_is_named() -> None:
    def the_worker_is_ready() -> bool:
        return False

    with pytest.raises(TimeoutError, match=r"the_worker_is_ready \(.*test_waiting.py:\d+\) was not true within 0 s"):
        wait_until(the_worker_is_ready, seconds=0)


def test_a_condition_that_becomes_true_at_the_deadline_is_seen() -> None:
    answers = iter([False, True])

    assert wait_until(lambda: next(answers), seconds=0.001, pause=0.01)


def test_an_error_of_a_condition_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 / 0)


def test_threads_that_end_are_waited_for() -> None:
    threads = [threading.Thread(target=lambda: None) for _ in range(3)]
    for thread in threads:
        thread.start()

    wait_for_end(*threads)

    assert not any(thread.is_alive() for thread in threads)


def test_a_thread_that_goes_on_fails_and_is_named() -> None:
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait, args=(60,), name="the one that hangs")
    thread.start()
    try:
        with pytest.raises(TimeoutError, match=r"the one that hangs did not end within 0\.01 s"):
            wait_for_end(thread, seconds=0.01)
    finally:
        go_on.set()
        thread.join(60)


def test_the_result_or_the_error_of_a_call_is_passed_on() -> None:
    def fail() -> None:
        raise TimeoutError("its own")

    assert wait_for_result(lambda: 3) == 3
    with pytest.raises(TimeoutError, match="its own"):
        wait_for_result(fail)


def test_a_call_that_does_not_return_fails_and_is_named() -> None:
    go_on = threading.Event()

    with pytest.raises(TimeoutError, match=r"Event\.wait .*did not return within 0\.01 s"):
        wait_for_result(go_on.wait, seconds=0.01)

    go_on.set()
