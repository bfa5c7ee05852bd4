"""Call reviewed operations with hostile arguments in a process that may crash: ``python -m tests.facts.hostile``.

Call number ``n`` is the same in every run, so that a call that crashed the process can be repeated alone.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import select
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..surface.checks import map_tensors
from ..surface.numpy_surface import NumpySurface
from ..surface.torch_surface import TorchSurface

ROOT = Path(__file__).parents[2]
SECONDS = 5.0
"""How long one call may take."""
TIER = os.environ.get("SYFT_HOSTILE_TIER", "reviewed")
"""The tier to attack."""
MEMORY = 1 << 30
"""How many bytes the process may allocate after its start."""
GROWTH = 200 << 20
"""How many more bytes it may use after all calls."""

INTEGERS = (0, 1, -1, 2, 3, -5, 7, 255, 2**31 - 1, -(2**31), 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64, 10**30)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"))
TORCH_DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 uint8 int8 bool complex64".split()
NUMPY_DTYPES = "f8 f4 f2 i8 i4 i2 u1 u8 i1 ? c8 S3 U3 M8[D] m8[s] i8,f4".split()
STRANGE = (None, True, False, "", "mean", "none", "\0", "ij,jk->ik", [], (), {}, b"x", 1j, ..., slice(None), object)


@dataclass(frozen=True)
class Finding:
    """A call that crashed the process, or did not return."""

    number: int
    op: str
    how: str


def attack(framework: str, calls: int, first: int = 0) -> Iterator[Finding]:
    """Make ``calls`` hostile calls; yield those that crash or hang, and continue after each."""
    last = first + calls
    while first < last:
        number, op, how = _watch(framework, first, last)
        if not how:
            return
        if not op:
            raise RuntimeError(f"cannot attack {framework}: the process {how} before its first call")
        yield Finding(number, op, how)
        first = number + 1


def _watch(framework: str, first: int, last: int) -> tuple[int, str, str]:
    """Run one process; return the call at which it ended, and how, or an empty string if it made all calls."""
    reader, writer = os.pipe()  # A separate pipe, because libraries may print to stdout and stderr.
    command = [sys.executable, "-m", "tests.facts.hostile", framework, str(first), str(last), str(writer)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=environment, cwd=ROOT, pass_fds=(writer,), **quiet)
    os.close(writer)
    number, op, rest, started = first, "", b"", False
    while True:
        ready, _, _ = select.select([reader], [], [], SECONDS if started else 120)
        if not ready:
            process.kill()
            break
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            started = True
            place, _, op = lines[-1].decode().partition(" ")
            number = int(place)
    os.close(reader)
    if not ready:
        process.wait()
        return number, op, f"takes more than {SECONDS:.0f} seconds"
    code = process.wait()
    return number, op, "" if code == 0 and number == last else f"ends the process with {code}"


# --- the process that may crash


def main(framework: str, first: int, last: int, progress: int) -> None:
    """Make the calls with the numbers from ``first`` to ``last``; write each to ``progress`` before it is made."""
    warnings.simplefilter("ignore")
    attacker = TorchAttacker() if framework == "torch" else NumpyAttacker()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_pages()[0] * resource.getpagesize() + MEMORY, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    before = _pages()[1]
    for number in range(first, last):
        op, args, kwargs = attacker.call(number)
        os.write(progress, f"{number} {op.name}\n".encode())
        with contextlib.suppress(Exception):
            op.run(*args, **kwargs)
    os.write(progress, f"{last} \n".encode())
    os._exit(int((_pages()[1] - before) * resource.getpagesize() > GROWTH))


def _pages() -> list[int]:
    """Return how many pages of memory the process has, and how many of them are in use."""
    return [int(field) for field in Path("/proc/self/statm").read_text().split()[:2]]


class Attacker:
    """Makes hostile calls out of samples."""

    surface: Any

    def __init__(self) -> None:
        self.ops = [op for op in self.surface.ops if op.tier == TIER and op.spelling in ("function", "method")]
        self.samples: dict[str, Any] = {}

    def call(self, number: int) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Return call number ``number``: a sample with some of its arguments replaced."""
        chance = random.Random(number)
        op = self.ops[number % len(self.ops)]
        if op.name not in self.samples:
            self.samples[op.name] = [
                (case.args, case.kwargs)
                for case in self.surface.cases(op)
                if case.call is op.func or self.is_call(case)
            ] or [((self.tensor(chance),), {})]
        args, kwargs = map_tensors(self.surface, self.surface.copy, chance.choice(self.samples[op.name]))
        places = [*range(len(args)), *kwargs]
        for place in chance.sample(places, min(len(places), chance.choice((1, 1, 2, 3)))):
            if isinstance(place, int):
                args = (*args[:place], self.hostile(chance, args[place]), *args[place + 1 :])
            else:
                kwargs[place] = self.hostile(chance, kwargs[place])
        if chance.random() < 0.05:
            args = (*args, self.anything(chance))
        elif chance.random() < 0.05:
            args = args[:-1]
        if chance.random() < 0.05:
            kwargs["out"] = self.tensor(chance)
        return op, args, kwargs

    def is_call(self, case: Any) -> bool:
        """Return whether the arguments of a sample are those of the operation itself."""
        return bool(getattr(case.call, "__qualname__", "").startswith("_function."))

    def hostile(self, chance: random.Random, value: Any) -> Any:
        """Return a replacement for ``value``, usually of the same type."""
        if chance.random() < 0.04:
            return self.anything(chance)
        if self.surface.is_tensor(value):
            return self.spoilt(chance, value) if chance.random() < 0.6 else self.tensor(chance)
        if isinstance(value, bool):
            return not value
        if value is None:
            return chance.choice((None, None, self.anything(chance)))
        if isinstance(value, int):
            return chance.choice(INTEGERS)
        if isinstance(value, float):
            return chance.choice(FLOATS)
        if isinstance(value, (list, tuple)) and value:
            changed = [self.hostile(chance, item) if chance.random() < 0.5 else item for item in value]
            return (
                type(value)(changed[: chance.choice((len(changed), len(changed), 1, 0))])
                if type(value)
                in (
                    list,
                    tuple,
                )
                else changed
            )
        return self.anything(chance)

    def anything(self, chance: random.Random) -> Any:
        """Return any argument."""
        kind = chance.randrange(5)
        if kind == 0:
            return self.tensor(chance)
        if kind == 1:
            return [chance.choice(INTEGERS) for _ in range(chance.randrange(4))]
        return chance.choice((INTEGERS, FLOATS, STRANGE)[kind - 2])

    def tensor(self, chance: random.Random) -> Any:
        """Return a tensor that may have an unexpected form."""
        raise NotImplementedError

    def spoilt(self, chance: random.Random, tensor: Any) -> Any:
        """Return a tensor of the same form with values that may be unexpected, or with strange strides."""
        raise NotImplementedError


class TorchAttacker(Attacker):
    """Attacks torch."""

    def __init__(self) -> None:
        self.surface = TorchSurface()
        super().__init__()

    def tensor(self, chance: random.Random) -> Any:
        shape = chance.choice(((), (0,), (1,), (3,), (2, 3), (3, 0), (2, 2, 2), (1, 2, 4, 4), (5, 5)))
        made = torch.zeros(shape, dtype=getattr(torch, chance.choice(TORCH_DTYPES)))
        return self.spoilt(chance, made)

    def spoilt(self, chance: random.Random, tensor: Any) -> Any:
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
            return tensor
        made = tensor.detach().clone()
        if chance.random() < 0.2:
            made = made.to(getattr(torch, chance.choice(TORCH_DTYPES)))
        with contextlib.suppress(Exception):
            number = chance.choice(FLOATS if made.is_floating_point() or made.is_complex() else INTEGERS)
            if chance.random() < 0.5 and made.numel():
                made.view(-1)[chance.randrange(made.numel())] = number
            else:
                made.fill_(number)
        kind = chance.randrange(8)
        with contextlib.suppress(Exception):
            if kind == 0:
                made = made[..., :1].expand(made.shape)
            elif kind == 1:
                made = made.transpose(0, -1)
            elif kind == 2:
                made = made.flip(0)[::2]
            elif kind == 3 and made.is_floating_point():
                made = made.requires_grad_()
            elif kind == 4:
                made = torch.zeros(made.numel() + 2, dtype=made.dtype).as_strided(made.shape, (1,) * made.dim())
        return made


class NumpyAttacker(Attacker):
    """Attacks numpy."""

    def __init__(self) -> None:
        np.seterr(all="ignore")
        self.surface = NumpySurface()
        super().__init__()

    def tensor(self, chance: random.Random) -> Any:
        shape = chance.choice(((), (0,), (1,), (3,), (2, 3), (3, 0), (2, 2, 2), (1, 2, 4, 4), (5, 5)))
        return self.spoilt(chance, np.zeros(shape, dtype=chance.choice(NUMPY_DTYPES)))

    def spoilt(self, chance: random.Random, tensor: Any) -> Any:
        made = np.array(tensor)
        if chance.random() < 0.2:
            with contextlib.suppress(Exception):
                made = made.astype(chance.choice(NUMPY_DTYPES))
        with contextlib.suppress(Exception):
            numbers = FLOATS if made.dtype.kind in "fc" else INTEGERS
            if chance.random() < 0.5 and made.size:
                made.flat[chance.randrange(made.size)] = chance.choice(numbers)
            else:
                made[...] = chance.choice(numbers)
        kind = chance.randrange(6)
        with contextlib.suppress(Exception):
            if kind == 0:
                made = np.broadcast_to(made[..., :1], made.shape)
            elif kind == 1:
                made = made.T
            elif kind == 2:
                made = made[::-2]
            elif kind == 3:
                base = np.zeros(made.size + 2, made.dtype)
                made = np.lib.stride_tricks.as_strided(base, made.shape, (made.itemsize,) * made.ndim)
        return made


if __name__ == "__main__":
    if len(sys.argv) == 5:
        main(sys.argv[1], *map(int, sys.argv[2:]))
    else:
        began = time.perf_counter()
        for found in attack(sys.argv[1], int(sys.argv[2])):
            print(found, flush=True)  # noqa: T201  # a program
        print(f"{time.perf_counter() - began:.1f} s")  # noqa: T201
