"""Whatever another party writes, what is printed about it obeys nothing: at scientists, and at owners."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core import cli
from syft_core.exceptions import ObjectNotFoundError
from syft_core.ledgers.entry import Entry
from syft_core.messages import Failure
from syft_core.peer import Peer
from syft_core.serde import deserialize, serialize
from syft_core.tensors.schema import Column, Schema
from syft_core.workers.addresses.wire import WireLocation
from syft_core.workers.seeing.ledger import Ledger
from syft_worker.desk.handle import RequestHandle
from syft_worker.desk.messages import AskRelease
from syft_worker.notices import make_notice
from syft_worker.requests import _cells, _to_lines, _to_table

EVIL = "\x1b[2J\x1b]0;owned\x07\u202e\u2066\u200b\r\n\x9b"
OBEYED = {c for c in EVIL if not c.isprintable()} - {"\n"}


def everything_scientists_see(me: Any, bob: Any) -> dict[str, Callable[[], str]]:
    """Return what prints something about the objects of a worker, by name."""
    bob.load_data([torch.ones(2).tag(f"#x{EVIL}").describe(f"{EVIL}d").private_tensor([f"u{EVIL}"])])
    (found,) = bob.search(f"#x{EVIL}")
    schema = Schema((Column(f"n{EVIL}", "category", f"u{EVIL}", (EVIL,)),))
    handle = RequestHandle(me.location_of(bob), f"id{EVIL}")
    handle._ask = lambda: dict.fromkeys(("state", "answer", "reason", "form"), EVIL)  # type: ignore[method-assign]
    gone = found.child.sibling()
    gone.gone, gone._id_at_location, gone.point_to_attr = EVIL, EVIL, EVIL
    received = deserialize(serialize(RuntimeError(f"e{EVIL}")))
    return {
        "a pointer": lambda: str(found) + repr(found) + repr(found.child),
        "a picture of a pointer": lambda: str(found._repr_html_()),
        "a pointer to nothing": lambda: repr(gone),
        "private values": lambda: repr(bob.object_store.entry(found.child.id_at_location).value),
        "a worker": lambda: bob._repr_html_(),
        "a schema": lambda: f"{schema}{schema._repr_html_()}",
        "a missing column": lambda: str(_raised(lambda: schema.find(["z"]))),
        "a request": lambda: f"{handle!r}{handle}{handle.state}{handle.answer}{handle.reason}{handle.form}",
        "an error": lambda: str(ObjectNotFoundError.on(EVIL, EVIL, EVIL)),
        "an error of a worker": lambda: str(received),
    }


def everything_owners_see(me: Any, bob: Any, capsys: Any) -> dict[str, Callable[[], str]]:
    """Return what prints something about requests and departures, by name."""
    bob.load_data([torch.ones(2).tag("#ages").private_tensor([])])
    location, id = me.location_of(bob), bob.search("#ages")[0].child.id_at_location
    location.ask(AskRelease((id,), None, f"why{EVIL}", (f"label{EVIL}",), (f"party{EVIL}",), f"line{EVIL}"))
    request = bob.requests[0]
    request.peer = Peer(f"peer{EVIL}", f"user{EVIL}")
    ledger = Ledger("bob")
    ledger.record(Entry(1.0, EVIL, EVIL, EVIL, (EVIL,), EVIL, EVIL, (EVIL,), EVIL, "released", "r", EVIL, "", EVIL))
    rule = bob.allow("study", user=f"user{EVIL}", computed_from=["#ages"], any_program=True, by=EVIL)
    table = request.to_table()

    def print_command() -> str:
        parser = argparse.Namespace(run=lambda _options: f"answer {EVIL}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cli, "_build_parser", lambda: argparse.Namespace(parse_args=lambda _argv: parser))
            cli.main([])
        return str(capsys.readouterr().out)

    return {
        "requests": lambda: f"{bob.requests}{bob.requests._repr_html_()}{request!r}",
        "the command list": lambda: "".join(_cells(table)),
        "the command show": lambda: "\n".join(_to_lines({**table, EVIL: EVIL, "more": [{EVIL: EVIL}]})),
        "the command rules": lambda: _to_table([rule.to_table()]),
        "any command": print_command,
        "rules": lambda: str(bob.rules),
        "the ledger": lambda: f"{ledger}{ledger.summary()}{ledger._repr_html_()}",
        "a notice": lambda: "".join(map(str, json.loads(make_notice("bob", request))["request"].values())),
    }


def _raised(call: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # its text is what matters
        call()
    return caught.value


def test_nothing_that_scientists_see_is_obeyed_by_a_terminal(me: Any, bob: Any) -> None:
    for name, show in everything_scientists_see(me, bob).items():
        assert not OBEYED & set(show()), name


def test_nothing_that_owners_see_is_obeyed_by_a_terminal(me: Any, bob: Any, capsys: Any) -> None:
    for name, show in everything_owners_see(me, bob, capsys).items():
        assert not OBEYED & set(show()), name


def test_an_error_of_a_hostile_worker_has_no_control_characters_in_its_notes_either() -> None:
    error = RuntimeError("text")
    error.__notes__ = [EVIL]
    location: Any = SimpleNamespace(id=f"bob{EVIL}", _causes={})

    made: Any = WireLocation._make_error(location, Failure(error, f"trace{EVIL}", 1, 0), [], 1)

    assert not OBEYED & set("".join(made.__notes__))
