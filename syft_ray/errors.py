"""The errors of workers on Ray."""

from __future__ import annotations

from syft_core.exceptions import ConnectionLostError, Text, WorkerError


class ActorLostError(ConnectionLostError):
    """The actor of Ray that hosts a worker is gone, and with it all objects of its workers."""

    of = Text("cannot reach {what}: {actor} {why}; {advice}")


class RayStartError(WorkerError, RuntimeError):
    """Ray, or the actors that host workers, cannot be started."""

    missing = Text("cannot start workers on Ray: Ray is not installed; run `{install}`")
    local = Text(
        "cannot start Ray on this machine: {why}. Ray does not say more: on a busy machine, one of its processes, the "
        "raylet, ends if others are not ready within 15 seconds, a limit that cannot be changed. Stop other programs "
        'and try again, or start Ray yourself (`ray start --head`) and pass `address="auto"`; its logs are in {logs}'
    )
    cluster = Text(
        "cannot connect to Ray at {address!r}: {why}; check the address, that `ray status` works there, and that both "
        "ends have the same versions of Python and Ray"
    )
    actors = Text(
        "cannot start {count} actors on Ray: after {seconds:g} seconds, {started} run; each needs one free CPU and "
        "the packages of this program: look at `ray status`, or pass a smaller number, `actors=...`"
    )
    failed = Text("cannot start workers on Ray: {why}; see the traceback above")
    wrong = Text("cannot start workers on Ray: {why}; {advice}")
