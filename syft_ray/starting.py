"""Start Ray on this machine, or connect to a cluster."""

from __future__ import annotations

import logging
import os
import socket
import tempfile
from pathlib import Path

from syft_core.exceptions import how_to_install
from syft_ray.errors import RayStartError

CONNECT_SECONDS = 10.0
"""How long to wait for an answer of a cluster."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray sends statistics about its use to its makers, unless told not to.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # which it warns about otherwise
}


def start_ray(address: str | None, cpus: int | None) -> tuple[bool, int]:
    """Start Ray, connect to it, or use this program's; return whether it was started, and how many CPUs it has."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # noqa: PLC0415  # optional, and it reads the variables
    except ImportError:
        raise RayStartError.missing(how_to_install("ray")) from None

    starts = not ray.is_initialized()
    if starts:
        if address is not None:
            _require_listener(address)
        options = {"address": "local", "num_cpus": cpus} if address is None else {"address": address}
        try:
            ray.init(**options, include_dashboard=False if address is None else None, log_to_driver=False,
                     logging_level=logging.ERROR)  # fmt: skip
        except Exception as error:
            ray.shutdown()
            why = " ".join(str(error).split())[:300] or type(error).__name__
            if address is None:
                logs = os.environ.get("RAY_TMPDIR", Path(tempfile.gettempdir(), "ray"))
                raise RayStartError.local(why, str(Path(logs, "session_latest", "logs"))) from error
            raise RayStartError.cluster(address, why) from error
    return starts, int(ray.cluster_resources().get("CPU", 1))


def _require_listener(address: str) -> None:
    """Raise if nothing answers at HOST:PORT: Ray would try again and again."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise RayStartError.cluster(address, str(error)) from None
