"""Measure every layer of ``torch.nn``: ``python benchmarks/layers.py [--rounds N] [--update]``.

Forward and backward on small inputs: on local tensors, on pointers to a worker in this process, and by wire to the
worker that ``syft-core worker`` serves, in a process of its own. By wire, the client waits once for each ten passes.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import network_servers as servers
import torch
from measure import machine, table, update_readme, verdict
from torch import nn

from syft_core.network.client import WebsocketClientWorker
from syft_core.workers.party.virtual import VirtualWorker
from syft_torch.hook import TorchHook

RATIO_LIMIT, EXTRA_LIMIT, WIRE_LIMIT = 3.0, 0.0003, 5.0
"""Each layer takes at most so many times as long as local, or so many seconds more; the median by wire."""
PASSES = 10
ACTIVATIONS = """
    AlphaDropout CELU Dropout ELU Flatten GELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid
    Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink
"""
LOSSES = "BCELoss BCEWithLogitsLoss HuberLoss L1Loss MSELoss PoissonNLLLoss SmoothL1Loss"


def words(text: str) -> list[str]:
    return text.split()


def rand(*shape: int) -> torch.Tensor:
    return torch.rand(shape)


def _list_layers() -> Iterator[tuple[nn.Module, tuple[torch.Tensor, ...]]]:
    """Yield layers, each with its inputs."""
    row, line, image, volume = rand(2, 4), rand(2, 4, 8), rand(2, 4, 8, 8), rand(1, 4, 4, 4, 4)
    tokens, classes, signs = torch.randint(8, (2, 3)), torch.randint(4, (2,)), torch.tensor([1.0, -1.0])
    for name in words(ACTIVATIONS):
        yield getattr(nn, name)(), (row,)
    yield from ((layer, (row,)) for layer in (nn.Softmax(1), nn.LogSoftmax(1), nn.Softmin(1), nn.Threshold(0.1, 0.0)))
    yield from ((layer, (row,)) for layer in (nn.Linear(4, 3), nn.LayerNorm(4), nn.RMSNorm(4), nn.BatchNorm1d(4)))
    yield nn.Bilinear(4, 4, 3), (row, row)
    yield nn.CosineSimilarity(), (row, rand(2, 4))
    yield nn.PairwiseDistance(), (row, rand(2, 4))
    yield nn.GLU(), (row,)
    yield nn.Embedding(8, 4), (tokens,)
    yield nn.EmbeddingBag(8, 4), (tokens,)
    for kind, data in (("1d", line), ("2d", image), ("3d", volume)):
        yield getattr(nn, f"Conv{kind}")(4, 3, 3, padding=1), (data,)
        yield getattr(nn, f"ConvTranspose{kind}")(4, 3, 3), (data,)
        yield getattr(nn, f"MaxPool{kind}")(2), (data,)
        yield getattr(nn, f"AvgPool{kind}")(2), (data,)
        yield getattr(nn, f"AdaptiveAvgPool{kind}")(2), (data,)
        yield getattr(nn, f"AdaptiveMaxPool{kind}")(2), (data,)
        yield getattr(nn, f"InstanceNorm{kind}")(4, affine=True), (data,)
        yield getattr(nn, f"Dropout{kind}")(), (data,)
    yield nn.BatchNorm2d(4), (image,)
    yield nn.BatchNorm3d(4), (volume,)
    yield nn.GroupNorm(2, 4), (image,)
    yield nn.LocalResponseNorm(2), (image,)
    yield nn.ZeroPad2d(1), (image,)
    yield nn.ReflectionPad2d(1), (image,)
    yield nn.Upsample(scale_factor=2), (image,)
    yield nn.PixelShuffle(2), (image,)
    yield nn.Unfold(2), (image,)
    for recurrent in (nn.RNN, nn.GRU, nn.LSTM):
        yield recurrent(4, 3), (rand(5, 2, 4),)
    for cell in (nn.RNNCell, nn.GRUCell, nn.LSTMCell):
        yield cell(4, 3), (row,)
    yield nn.MultiheadAttention(4, 2), (line.mT, line.mT, line.mT)
    yield nn.TransformerEncoderLayer(4, 2, 8), (line.mT,)
    yield nn.TransformerDecoderLayer(4, 2, 8), (line.mT, line.mT)
    for name in words(LOSSES):
        yield getattr(nn, name)(), (row, rand(2, 4))
    yield nn.CrossEntropyLoss(), (row, classes)
    yield nn.NLLLoss(), (row, classes)
    yield nn.SoftMarginLoss(), (rand(2), signs)
    yield nn.MarginRankingLoss(), (rand(2), rand(2), signs)
    yield nn.TripletMarginLoss(), (row, rand(2, 4), rand(2, 4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="rounds per layer, of which the fastest counts (7)")
    parser.add_argument("--update", action="store_true", help="write the table into benchmarks/README.md")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # Nothing here is encrypted.
    torch.set_num_threads(1)
    torch.manual_seed(0)
    hook = TorchHook(torch)
    hook.attributes.warm_up()
    layers = list(_list_layers())
    near = VirtualWorker(hook, id="near")
    with servers.start(servers.serve_worker, "bob") as server:
        far = WebsocketClientWorker(hook, "127.0.0.1", server.port, token="ann")
        found = [(type(layer).__name__, *measure(layer, inputs, near, far, options.rounds)) for layer, inputs in layers]
        far.close()
    text = report(found)
    print(text)
    if options.update:
        update_readme("layers", text)


def measure(layer: nn.Module, inputs: tuple[torch.Tensor, ...], near: Any, far: Any, rounds: int) -> list[float]:
    """Return the seconds of a forward and a backward pass: local, in process, by wire."""
    runs = [make_run(layer, inputs, None, lambda: None)]
    for worker, wait in ((near, lambda: None), (far, lambda: far.search("#nothing"))):
        runs.append(make_run(layer.copy(), tuple([tensor.clone() for tensor in inputs]), worker, wait))
    for run in runs:
        run()
    times = [[run() for run in runs] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def make_run(layer: Any, inputs: tuple[Any, ...], worker: Any, wait: Callable[[], Any]) -> Callable[[], float]:
    given = tuple([tensor.detach() for tensor in inputs])
    if given[0].is_floating_point():
        given[0].requires_grad_()
    if worker is not None:
        layer.send(worker)
        given = tuple([tensor.send(worker) for tensor in given])

    def run() -> float:
        start = perf_counter()
        for _ in range(PASSES):
            result = layer(*given)
            while isinstance(result, tuple):
                result = result[0]
            result.sum().backward()
        wait()
        return (perf_counter() - start) / PASSES

    return run


def report(found: list[tuple[Any, ...]]) -> str:
    rows, wire = [], []
    for name, local, near, far in found:
        is_fast = near <= RATIO_LIMIT * local or near <= local + EXTRA_LIMIT
        wire.append(far / local)
        times = [f"{seconds * 1e6:.0f}" for seconds in (local, near, far)]
        verdict_here = "met" if is_fast else "**not met**"
        rows.append([name, *times, f"**{near / local:.2f}**", verdict_here, f"{far / local:.2f}"])
    times = ["local µs", "in process µs", "served µs"]
    headers = ["layer", *times, "in process / local", "≤ 3 or 0.3 ms more", "served / local"]
    middle = median(near / local for _, local, near, _ in found)
    summary = (
        f"Median of {len(found)} layers: in process {middle:.2f}, served **{median(wire):.2f}** "
        f"(target ≤ {WIRE_LIMIT:g}: {verdict(median(wire), WIRE_LIMIT)})."
    )
    return f"{summary}\n\n{table(headers, rows)}\n\n{machine()}, torch {torch.__version__}, one thread."


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
