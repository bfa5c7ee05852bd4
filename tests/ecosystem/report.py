"""Write what programs of other people's do on a worker into docs/compatibility.md."""

from __future__ import annotations

import importlib.metadata
import logging
import warnings
from pathlib import Path

import torch

from syft_core.workers.virtual import VirtualWorker
from syft_torch.hook import TorchHook

from .compare import Outcome, compare
from .programs import programs
from .tools import measure_with_torchmetrics, train_with_lightning

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
PACKAGES = ("torch", "transformers", "torchvision", "timm", "einops", "torchmetrics", "lightning", "scikit-learn")
HEAD = """# Compatibility

Programs of other people's, run at home and on a worker: models from small configurations, without downloads. For each
model the losses of three steps of AdamW, and all parameters and buffers after them, are compared bit by bit, in process
and through the wire format.

The *time* is that on a worker, in process and by wire, as a multiple of the time at home, for the steps after the
first. The models are tiny, so most of it is the cost of single calls; it falls as models grow.

A model that is given a mask as data reads values of it, to see whether there is anything to mask. That is refused
unless the program consents with `with sy.revealing("why"):`; the column *reads* names the call and the line.

This page is written by `python -m tests.ecosystem.report` in the environment `tox -e ecosystem`.
"""


def main() -> None:
    """Run everything in both modes, and write the page."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    modes = [outcomes(serialize) for serialize in (False, True)]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    rows = ["| program | in process | by wire | time | reads |", "|---|---|---|---|---|"]
    rows += [_row(name, one, modes[1][name]) for name, one in modes[0].items()]
    PAGE.write_text("\n".join([HEAD, f"With {versions}:", "", *rows, ""]))


def outcomes(serialize: bool) -> dict[str, Outcome]:
    """Run everything in one mode."""
    with TorchHook(torch, verbose=False) as hook:
        hook.attributes.warm_up()
        bob = VirtualWorker(hook, id="bob", serialize=serialize)
        found = {program.name: compare(program, bob) for program in programs()}
        found["Lightning Trainer"] = train_with_lightning(bob)
        found["torchmetrics accuracy"] = measure_with_torchmetrics(bob)
        return found


def _row(name: str, here: Outcome, by_wire: Outcome) -> str:
    ratios = " / ".join("-" if one.ratio is None else f"{one.ratio:.1f}" for one in (here, by_wire))
    reads = here.reads.partition("site-packages/")
    what = f"{reads[0].split(' was ')[0]} at {reads[2]}" if reads[2] else here.reads
    return f"| {name} | {here.verdict} | {by_wire.verdict} | {ratios} | {what} |"


if __name__ == "__main__":
    main()
