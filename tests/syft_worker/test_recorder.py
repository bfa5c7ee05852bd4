"""The record names what is executed, and nothing after it has ended."""

from __future__ import annotations

import os
from typing import Any

import pytest

from syft_core.peer import Peer
from syft_worker.accounts import Accounts
from syft_worker.activity import SIZE, Activity
from syft_worker.allowances import Allowance
from syft_worker.recorder import UsageRecorder

ANA = Peer("laptop@ana", "ana")


def make_recorder(far: Any, **allowance: Any) -> UsageRecorder:
    file = os.memfd_create("activity")
    os.truncate(file, SIZE)
    return UsageRecorder(Accounts(far, {"ana": Allowance(**allowance)}), Activity(file))


def test_a_command_inside_of_another_is_recorded_until_the_outer_one_ends(far: Any) -> None:
    recorder, seen = make_recorder(far), []

    def outer() -> None:
        recorder.watch(b"inner", ANA, lambda: None)
        seen.append(recorder.activity.read().operation)

    recorder.batch.number = 7
    recorder.watch(b"outer", ANA, outer)

    assert seen == ["inner"]
    assert recorder.activity.read() is None
    recorder.record(ANA, b"again")
    found = recorder.activity.read()
    assert (found.peer, found.user, found.batch, found.operation) == ("laptop@ana", "ana", 7, "again")


def test_the_time_is_charged_also_if_the_command_fails(far: Any) -> None:
    recorder = make_recorder(far, cpu_seconds=60.0)

    def fail() -> None:
        sum(range(200_000))
        raise ValueError("by a test")

    with pytest.raises(ValueError, match="by a test"):
        recorder.watch(b"", ANA, fail)

    assert recorder._accounts.of("ana").cpu.used > 0
