"""Serde compared with other libraries: medians of the quietest block, and ratios to one memcpy of the same bytes.

python benchmarks/serde.py                       # torch, pickle, memcpy, and safetensors where it is installed
ANCESTOR_PYTHON=/path/to/python python benchmarks/serde.py   # PySyft 0.2.9 in another interpreter than .venvs/ancestor
python benchmarks/serde.py --threshold           # from which size a buffer should leave the structure
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from measure import update_readme

from syft_core.serde import codecs, deserialize, frames, from_frames, serialize, structure
from syft_torch.serde import raw, register_codecs

try:
    import safetensors.torch as safetensors
except ImportError:
    safetensors = None

DEFAULT_ANCESTOR = Path(__file__).with_name(".venvs") / "ancestor/bin/python"
BLOCKS = 12
ROUNDS = 5
BUDGET = 0.15  # seconds a round


# ---- cases -----------------------------------------------------------------------------------------------------


def resnet_state() -> dict[str, torch.Tensor]:
    """Build the state dict of a ResNet-18: 122 tensors, 45 MB."""
    state: dict[str, torch.Tensor] = {}

    def convolution(name: str, out: int, into: int, size: int) -> None:
        state[f"{name}.weight"] = torch.randn(out, into, size, size)

    def norm(name: str, width: int) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            state[f"{name}.{part}"] = torch.randn(width)
        state[f"{name}.num_batches_tracked"] = torch.tensor(100)

    convolution("conv1", 64, 3, 7)
    norm("bn1", 64)
    into = 64
    for stage, width in enumerate((64, 128, 256, 512), 1):
        for block in range(2):
            name = f"layer{stage}.{block}"
            convolution(f"{name}.conv1", width, into, 3)
            norm(f"{name}.bn1", width)
            convolution(f"{name}.conv2", width, width, 3)
            norm(f"{name}.bn2", width)
            if into != width:
                convolution(f"{name}.downsample.0", width, into, 1)
                norm(f"{name}.downsample.1", width)
            into = width
    state["fc.weight"], state["fc.bias"] = torch.randn(1000, 512), torch.randn(1000)
    return state


CASES: dict[str, Callable[[], Any]] = {
    "10 floats": lambda: torch.randn(10),
    "1M float32": lambda: torch.randn(1_000_000),
    "ResNet-18 state dict": resnet_state,
    "1,000 small tensors": lambda: [torch.randn(10) for _ in range(1000)],
}


# ---- rivals: name -> (write, read) -----------------------------------------------------------------------------


def tensors_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return list(value.values() if isinstance(value, dict) else value)


def save(value: Any) -> bytes:
    archive = io.BytesIO()
    torch.save(value, archive)
    return archive.getvalue()


def load(data: bytes) -> Any:
    return torch.load(io.BytesIO(data), weights_only=True)


def pickle_apart(value: Any) -> tuple[bytes, list[pickle.PickleBuffer]]:
    """Pickle numpy views with their buffers out of band: torch's tensors themselves do not know how."""
    buffers: list[pickle.PickleBuffer] = []
    arrays = [tensor.numpy() for tensor in tensors_of(value)]
    return pickle.dumps(arrays, protocol=5, buffer_callback=buffers.append), buffers


def unpickle_apart(data: tuple[bytes, list[pickle.PickleBuffer]]) -> Any:
    return [torch.from_numpy(array) for array in pickle.loads(data[0], buffers=data[1])]


def to_named(value: Any) -> dict[str, torch.Tensor]:
    return value if isinstance(value, dict) else {str(i): tensor for i, tensor in enumerate(tensors_of(value))}


def fresh_copies(value: Any) -> Callable[[Any], Any]:
    views = [memoryview(tensor.numpy().reshape(-1)).cast("B") for tensor in tensors_of(value)]
    return lambda _: [bytearray(view) for view in views]


def one_fresh_copy(value: Any) -> Callable[[Any], Any]:
    whole = memoryview(b"".join(tensor.numpy().tobytes() for tensor in tensors_of(value)))
    return lambda _: bytes(whole)


def receive(value: Any) -> list[Any]:
    """Return the frames as a transport delivers them: each in memory of its own that may be written."""
    return [bytearray(frame) for frame in frames(value)]


Rival = tuple[Callable[[Any], Any], Any, Callable[[Any], Any]]


def rivals(value: Any) -> dict[str, Rival]:
    joined, apart = serialize(value), [bytes(frame) for frame in frames(value)]
    found: dict[str, Rival] = {
        "memcpy, fresh memory": (one_fresh_copy(value), None, fresh_copies(value)),
        "serialize / deserialize": (serialize, joined, deserialize),
        "the same, read as views": (serialize, joined, lambda data: deserialize(data, writable=False)),
        "frames / from_frames, copied": (frames, apart, from_frames),
        "frames / from_frames, taken over": (frames, receive(value), from_frames),
        "torch.save / load(weights_only)": (save, save(value), load),
        "pickle 5": (lambda x: pickle.dumps(x, 5), pickle.dumps(value, 5), pickle.loads),
        "pickle 5 of numpy, out of band": (pickle_apart, pickle_apart(value), unpickle_apart),
    }
    if safetensors is not None:
        found["safetensors"] = (
            lambda x: safetensors.save(to_named(x)),
            safetensors.save(to_named(value)),
            safetensors.load,
        )
    return found


# ---- measuring -------------------------------------------------------------------------------------------------


def once(function: Callable[[Any], Any], argument: Any, repeat: int) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        function(argument)
    return (time.perf_counter() - start) / repeat


def medians(jobs: dict[Any, tuple[Callable[[Any], Any], Any]], rounds: int) -> dict[Any, float]:
    """Run all jobs in turn, round after round, so that noise falls on all of them alike.

    Of several blocks of rounds, the median in the quietest counts: other work on the machine only ever adds time.
    """
    repeats = {}
    for key, (function, argument) in jobs.items():
        function(argument)
        repeats[key] = max(1, int(BUDGET / len(jobs) / max(once(function, argument, 1), 1e-7)))
    quietest: dict[Any, float] = dict.fromkeys(jobs, float("inf"))
    for _ in range(BLOCKS):
        times: dict[Any, list[float]] = {key: [] for key in jobs}
        for _ in range(rounds):
            for key, (function, argument) in jobs.items():
                times[key].append(once(function, argument, repeats[key]))
        quietest = {key: min(quietest[key], statistics.median(found)) for key, found in times.items()}
    return quietest


def measure(value: Any, rounds: int) -> dict[str, tuple[float, float]]:
    jobs: dict[Any, tuple[Callable[[Any], Any], Any]] = {}
    for name, (write, data, read) in rivals(value).items():
        jobs[name, "write"] = write, value
        jobs[name, "read"] = read, data
    found = medians(jobs, rounds)
    return {name: (found[name, "write"], found[name, "read"]) for name, way in jobs if way == "write"}


ANCESTOR = """
import sys, types, time, json
for name in ("aiortc", "aiortc.contrib", "aiortc.contrib.signaling"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
    sys.modules[name].__getattr__ = lambda wanted: object
import torch, syft as sy
sy.TorchHook(torch)
from syft.serde import serialize, deserialize
def median(f, x, rounds=7, blocks=5):
    f(x); start = time.perf_counter(); f(x); n = max(1, int(0.01 / max(time.perf_counter() - start, 1e-7)))
    quietest = float("inf")
    for _ in range(blocks):
        out = []
        for _ in range(rounds):
            start = time.perf_counter()
            for _ in range(n): f(x)
            out.append((time.perf_counter() - start) / n)
        quietest = min(quietest, sorted(out)[rounds // 2])
    return quietest
cases = {"10 floats": torch.randn(10), "1M float32": torch.randn(1000000),
         "1,000 small tensors": [torch.randn(10) for _ in range(1000)]}
print(json.dumps({n: (median(serialize, x), median(deserialize, serialize(x))) for n, x in cases.items()}))
"""


def ancestor() -> dict[str, tuple[float, float]]:
    python = os.environ.get("ANCESTOR_PYTHON", str(DEFAULT_ANCESTOR))
    if not os.path.exists(python):
        return {}
    done = subprocess.run([python, "-W", "ignore", "-c", ANCESTOR], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"the ancestor did not run: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return {}
    return {name: tuple(times) for name, times in json.loads(done.stdout.splitlines()[-1]).items()}


def rows(found: dict[str, tuple[float, float]]) -> Iterable[str]:
    base = found["memcpy, fresh memory"]
    ours = found["serialize / deserialize"]
    yield "| | write µs | read µs | of memcpy | of ours |"
    yield "|---|---|---|---|---|"
    for name, (write, read) in found.items():
        ratios = f"{write / base[0]:.2f} / {read / base[1]:.2f} | {write / ours[0]:.2f} / {read / ours[1]:.2f}"
        yield f"| {name} | {write * 1e6:,.1f} | {read * 1e6:,.1f} | {ratios} |"


def compare(rounds: int) -> str:
    """Return the tables of all cases."""
    old = ancestor()
    machine = f"python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores"
    parts = [f"{machine}, quietest of {BLOCKS} blocks of {rounds} rounds"]
    for name, build in CASES.items():
        found = measure(build(), rounds)
        if name in old:
            found["PySyft 0.2.9"] = old[name]
        parts += [f"**{name}**", "\n".join(rows(found))]
    return "\n\n".join(parts)


def threshold(rounds: int) -> str:
    """Send 100 tensors of each size, inside the structure and as separate frames."""
    lines = ["| bytes | inside, write/read µs | separate, write/read µs |", "|---|---|---|"]
    for size in (128, 256, 512, 1024, 2048, 4096, 8192):
        value = [torch.randn(size // 4) for _ in range(100)]
        cells = []
        for limit in (10**9, 0):
            structure.INLINE = raw.INLINE = limit
            jobs = {"write": (serialize, value), "read": (deserialize, serialize(value))}
            found = medians(jobs, rounds)
            cells.append(f"{found['write'] * 1e4:.2f} / {found['read'] * 1e4:.2f}")
        lines.append(f"| {size} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--threshold", action="store_true", help="from which size a buffer should leave the structure")
    parser.add_argument("--update", action="store_true", help="write the tables into benchmarks/README.md")
    options = parser.parse_args()
    register_codecs(codecs)
    torch.manual_seed(0)
    text = threshold(options.rounds) if options.threshold else compare(options.rounds)
    print(text)
    if options.update and not options.threshold:
        update_readme("serde", text)


if __name__ == "__main__":
    main()
