"""Codecs for TorchScript: compiled programs, which are loaded only if the receiver allows it.

``torch.jit.load`` compiles and runs code from the sender, so the receiver has to opt in with
``Context(allow_scripts=True)``. Loading a ``torch.export`` program unpickles, so these are refused.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import NoReturn

import torch

from syft_core.serde import Codec, Context, SerdeError
from syft_core.values import Payload


@contextlib.contextmanager
def _ignore_deprecation() -> Iterator[None]:
    """Ignore torch's deprecation warnings for TorchScript; their category depends on the version of torch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        yield


def simplify_script(script: object, _: Context) -> tuple[memoryview]:
    """Return a script module or function as the bytes of torch's archive format."""
    archive = io.BytesIO()
    with _ignore_deprecation():
        torch.jit.save(script, archive)
    return (archive.getbuffer(),)


def detail_script(payload: Payload, context: Context) -> torch.jit.ScriptModule:
    """Load a script if the receiver allows it."""
    (data,) = payload
    if not context.allow_scripts:
        raise SerdeError(
            "cannot load a TorchScript program: it would run code from the sender; if you trust the sender, "
            "read with `Context(allow_scripts=True)`"
        )
    with _ignore_deprecation():
        return torch.jit.load(io.BytesIO(data), map_location=context.device_fallback)


def _refuse_export(_: object, _context: Context) -> NoReturn:
    raise SerdeError(
        "cannot send an ExportedProgram: loading one unpickles, which runs code; send the module itself, or its "
        "`state_dict()`"
    )


SCRIPT_MODULE = Codec(torch.jit.ScriptModule, 159, simplify_script, detail_script, subclasses=True)

CODECS = (
    SCRIPT_MODULE,
    Codec(torch.jit.ScriptFunction, 160, simplify_script, detail_script),
    Codec(torch.export.ExportedProgram, 164, _refuse_export, _refuse_export),
)
