"""Registers encrypted computation: workers are parties of protocols on shares."""

from __future__ import annotations

from syft_core.plugins.hookspecs import RegisterCodec, RegisterError, RegisterMessage, RegisterTensorTypes, hookimpl
from syft_mpc.additive_shared import AdditiveSharingTensor
from syft_mpc.authenticated_tensor import AuthenticatedTensor
from syft_mpc.errors import CheatingError, PartyFailedError, PrecisionError, ProtocolError
from syft_mpc.fixed_precision import CODEC, FixedPrecisionTensor
from syft_mpc.messages import Deposit, OpenChannel, Prepare, RunProtocol
from syft_mpc.parties import abandon_protocol, accept_deposit, open_channel
from syft_mpc.secret_places import SecretPlaces
from syft_mpc.tasks import prepare, run_protocol


@hookimpl
def register_tensor_types(register: RegisterTensorTypes) -> None:
    """Register the layers of encoded and shared numbers."""
    register(FixedPrecisionTensor, AdditiveSharingTensor, AuthenticatedTensor, SecretPlaces)


@hookimpl
def register_codecs(register: RegisterCodec) -> None:
    """Let encoded numbers be sent; shares are sent one by one."""
    register(FixedPrecisionTensor, code=CODEC.code, simplify=CODEC.simplify, detail=CODEC.detail)


@hookimpl
def register_messages(register: RegisterMessage) -> None:
    """Register the messages of channels and protocols."""
    register(OpenChannel, open_channel)
    register(RunProtocol, run_protocol, abandon_protocol)
    register(Prepare, prepare)
    register(Deposit, accept_deposit)


@hookimpl
def register_errors(register: RegisterError) -> None:
    """Let the errors of encrypted computation be sent."""
    for error in (PrecisionError, ProtocolError, CheatingError, PartyFailedError):
        register(error)
