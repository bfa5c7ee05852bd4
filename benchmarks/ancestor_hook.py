"""The ancestor, PySyft 0.2.9, in a process of its own with its own Python 3.7: it hooks torch and times on request."""

from __future__ import annotations

import platform
import sys
import types
from time import perf_counter
from typing import Any

import torch
from measure import serve
from torch_workloads import chain_clocks, plain_clocks


def main() -> None:
    start = perf_counter()
    syft = import_syft()
    imported = perf_counter()
    syft.TorchHook(torch)
    facts = {
        "versions": f"PySyft {syft.version.__version__}, torch {torch.__version__}, Python {platform.python_version()}",
        "import": imported - start,
        "hook": perf_counter() - imported,
    }
    serve(facts, {**plain_clocks(), **chain_clocks(lambda tensor: syft.LoggingTensor().on(tensor))})


def import_syft() -> Any:
    """Import syft without aiortc, which it needs for another transport and which no longer builds."""
    stub("aiortc", RTCPeerConnection=object, RTCSessionDescription=object)
    stub("aiortc.contrib")
    stub(
        "aiortc.contrib.signaling",
        object_from_string=None,
        object_to_string=None,
        CopyAndPasteSignaling=None,
    )
    import syft  # noqa: PLC0415  # its time is measured, and the stubs come first

    return syft


def stub(name: str, **attributes: Any) -> None:
    module = types.ModuleType(name)
    vars(module).update(attributes)
    sys.modules[name] = module


if __name__ == "__main__":
    main()
