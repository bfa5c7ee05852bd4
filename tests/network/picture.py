"""Draw docs/pictures/worker-page.png: ``python -m tests.network.picture``."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

import torch

from syft_core.exceptions import GetNotPermittedError
from syft_core.network.identity import Identity
from syft_core.workers.party.virtual import VirtualWorker
from syft_torch.hook import TorchHook

from .browser import open_browser
from .served import serve


def draw(path: Path, *flags: str) -> None:
    """Let two users work on a hospital's data, and take a picture of its page."""
    with TorchHook(torch) as hook, serve(hook, "st-mary") as served, open_browser(*flags) as browser:
        served.tokens["ben-secret"] = Identity("ben")
        ages, dose = (torch.rand(442, 10), torch.rand(442, 1))
        served.worker.load_data(
            [
                ages.private_tensor([]).tag("#diabetes", "#patients").describe("442 patients, 10 baseline variables"),
                dose.private_tensor([]).tag("#diabetes", "#progression").describe("progression after one year"),
                torch.rand(12).tag("#public", "#waiting-times").describe("mean waiting time by month"),
            ]
        )
        ana = served.connect()
        ben = served.connect("ben-secret", client=VirtualWorker(hook, id="laptop", auto_add=False))
        x, y = ana.search("#patients")[0], ana.search("#progression")[0]
        model = torch.nn.Linear(10, 1).send(ana)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for pause in (0.01, 0.002, 0.004, 0.001, 0.006) * 60:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            ana.flush()
            time.sleep(pause)
        ana.search("#waiting-times")[0].copy().get(reason="a first look")
        ben.search("#waiting-times")[0].copy().get(reason="poster")
        mean = x.mean(0)
        mean.request("normalisation of our test set")
        model.request("the progression model for our paper")
        row = x[0]
        row.request("to debug my loss")
        served.worker.approve(served.worker.requests[0], by="Dr. Noor")
        mean.get(reason="test set")
        served.worker.deny(served.worker.requests[2], "single patients do not leave", by="Dr. Noor")
        with suppress(GetNotPermittedError):
            model.get()
        browser.open(served.page.url)
        browser.type("input[name=token]", "owner-secret")
        browser.click("button")
        browser.find("header")
        path.write_bytes(browser.take_picture())


if __name__ == "__main__":
    draw(
        Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures/worker-page.png"),
        *(sys.argv[2:] or ["--window-size=1200,1720", "--hide-scrollbars"]),
    )
