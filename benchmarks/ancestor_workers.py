"""The ancestor in a process of its own: it makes two virtual workers and times on request.

Run by ``workers.py`` with the Python of the environment that ``make_ancestor.sh`` makes.
"""

from __future__ import annotations

import platform

import torch
from ancestor_hook import import_syft
from measure import serve
from worker_workloads import clocks


def main() -> None:
    syft = import_syft()
    hook = syft.TorchHook(torch)
    bob, alice = syft.VirtualWorker(hook, id="bob"), syft.VirtualWorker(hook, id="alice")
    versions = f"PySyft {syft.version.__version__}, torch {torch.__version__}, Python {platform.python_version()}"
    serve({"versions": versions}, clocks(bob, alice))


if __name__ == "__main__":
    main()
