"""Registers the messages of sums, their release rule and their errors."""

from __future__ import annotations

from syft_core.features import Later
from syft_core.plugins.hookspecs import RegisterError, RegisterMessage, RegisterRule, hookimpl
from syft_sums import messages
from syft_sums.errors import SumError, SumRefusedError, SumRuleError
from syft_sums.release import ONLY_SUMS, RULE

_ask, _join, _mask, _reveal = (
    Later(f"syft_sums.handlers:{name}") for name in ("ask_member", "join_sum", "mask_sum", "reveal_sum")
)
"""Loaded on first use: they need numpy, and other processes have rules, too."""


@hookimpl
def register_messages(register: RegisterMessage) -> None:
    """Register the messages of a study."""
    register(messages.AskMember, _ask)
    register(messages.JoinSum, _join)
    register(messages.MaskSum, _mask)
    register(messages.RevealSum, _reveal)


@hookimpl
def register_rules(register: RegisterRule) -> None:
    """Let results leave inside sums."""
    register(RULE, ONLY_SUMS)


@hookimpl
def register_errors(register: RegisterError) -> None:
    """Let the errors of sums be sent."""
    for error in (SumError, SumRefusedError, SumRuleError):
        register(error)
