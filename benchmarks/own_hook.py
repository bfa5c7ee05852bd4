"""This library in a process of its own: it hooks torch, prints what that took, and times on request."""

from __future__ import annotations

import platform
from time import perf_counter

import torch
from measure import serve
from torch_workloads import chain_clocks, plain_clocks


def main() -> None:
    start = perf_counter()
    from syft_torch.hook import TorchHook  # noqa: PLC0415  # its time is measured

    imported = perf_counter()
    TorchHook(torch)
    facts = {
        "versions": f"torch {torch.__version__}, Python {platform.python_version()}",
        "import": imported - start,
        "hook": perf_counter() - imported,
    }
    from syft_core.tensors.logging import LoggingTensor  # noqa: PLC0415  # not before the time is taken

    serve(facts, {**plain_clocks(), **chain_clocks(lambda tensor: LoggingTensor().on(tensor))})


if __name__ == "__main__":
    main()
