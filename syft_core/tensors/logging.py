"""LoggingTensor: log every operation on the chain."""

from __future__ import annotations

import logging
from typing import ClassVar

from syft_core.hook import hook_args
from syft_core.hook.dispatch import TRANSPARENT
from syft_core.serde import codecs
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.codecs import build_layer_codec
from syft_core.values import Args, Kwargs, Tensor

_log = logging.getLogger(__name__)

Command = tuple[str, None, Args, Kwargs]


class LoggingTensor(AbstractTensor):
    """Log the name of every method and function that is called on the chain, never a value.

    It logs to ``syft_core.tensors.logging`` at level INFO; enable it with ``logging.basicConfig(level=logging.INFO)``.
    """

    rank = TRANSPARENT
    log_as_function: ClassVar[frozenset[str]] = frozenset({"add", "mul", "relu"})
    """The functions that are logged as "Log function"; all others are logged as "Default log"."""

    @classmethod
    def on_function_call(cls, command: Command) -> None:
        """Log the full name of a function."""
        if _log.isEnabledFor(logging.INFO):
            name = command[0]
            _log.info(
                "%s %s", "Log function" if name.rsplit(".", 1)[-1] in cls.log_as_function else "Default log", name
            )

    @classmethod
    def on_method_call(cls, command: Command) -> None:
        """Log the name of a method."""
        if _log.isEnabledFor(logging.INFO):
            _log.info("Log method %s", command[0].rsplit(".", 1)[-1])

    def manual_add(self, other: Tensor) -> LoggingTensor:
        """Add without the decorators, as an example of what they do: unwrap, compute, wrap."""
        _log.info("Log method manual_add")
        child, (other_child,), _ = hook_args.unwrap_args_from_method("manual_add", self, (other,), {})
        response = child + other_child
        return hook_args.hook_response("manual_add", response, wrap_type=type(self))  # type: ignore[no-any-return]


hook_args.default_register_tensor(LoggingTensor)
codecs.register(build_layer_codec(LoggingTensor, code=250))
