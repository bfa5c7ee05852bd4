"""The plugin of encrypted computation: workers are parties of protocols on shares."""

from __future__ import annotations

from collections.abc import Callable

from syft_core.plugins.hookspecs import hookimpl
from syft_mpc import additive_shared as _additive_shared  # noqa: F401  # registers codecs
from syft_mpc import authenticated_tensor as _authenticated_tensor  # noqa: F401  # registers codecs
from syft_mpc import fixed_precision as _fixed_precision  # noqa: F401  # registers codecs
from syft_mpc.errors import CheatingError, PartyFailedError, PrecisionError, ProtocolError
from syft_mpc.messages import Deposit, OpenChannel, Prepare, RunProtocol
from syft_mpc.parties import abandon_protocol, accept_deposit, open_channel
from syft_mpc.tasks import prepare, run_protocol


@hookimpl
def register_messages(register: Callable[..., None]) -> None:
    """Register the messages of channels and protocols."""
    register(OpenChannel, open_channel)
    register(RunProtocol, run_protocol, abandon_protocol)
    register(Prepare, prepare)
    register(Deposit, accept_deposit)


@hookimpl
def register_errors(register: Callable[..., None]) -> None:
    """Let the errors of encrypted computation be sent."""
    for error in (PrecisionError, ProtocolError, CheatingError, PartyFailedError):
        register(error)
