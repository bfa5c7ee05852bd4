"""Call operations with hostile arguments in a process that may crash: ``python -m tests.facts.hostile``.

Call number ``n`` is the same in every run, so that a call that crashed the process can be repeated alone. The memory of
each tensor lies between pages that must not be accessed. Each call is made twice, with different values in newly
allocated memory, to find results that show it.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import random
import re
import resource
import select
import signal
import subprocess
import sys
import time
import warnings
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from syft_core.hook.chain import end_of, plain_end
from syft_core.hook.rules import leaves
from syft_core.workers.party.virtual import VirtualWorker
from syft_numpy.hook import NumpyHook
from syft_numpy.native import SyftArray
from syft_torch.attributes import _PARTS
from syft_torch.hook import TorchHook

from ..surface.checks import map_tensors
from ..surface.numpy_surface import NumpySurface
from ..surface.torch_surface import TorchSurface

ROOT = Path(__file__).parents[2]
SECONDS = 5.0
"""How much time of a processor one call may take."""
WAIT = 120.0
"""How many seconds a call may take, on a machine that has other work to do."""
TIER = os.environ.get("SYFT_HOSTILE_TIER", "reviewed")
"""The tier to attack."""
PRIVATE = "private"
"""Stands for the reviewed tier on private data of a worker, which the sender may not read."""
ONLY = os.environ.get("SYFT_HOSTILE_OPS", "")
"""A regular expression: attack only the operations whose names contain a match."""
MEMORY = 1 << 30
"""How many bytes the process may allocate after its start."""
GROWTH = 200 << 20
"""How many more bytes it may use after all calls."""

EXTREMES = ("smallest", -1, 0, "largest")
"""Integers that all tensors of a call may have, each its own; the ends of the range of a dtype by name."""
INTEGERS = (
    0,
    1,
    -1,
    2,
    3,
    -5,
    7,
    255,
    2**31 - 1,
    -(2**31),
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
    2**64,
    10**30,
)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"))
TORCH_DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 uint8 int8 bool complex64".split()
NUMPY_DTYPES = "f8 f4 f2 i8 i4 i2 u1 u8 i1 ? c8 S3 U3 M8[D] m8[s] i8,f4".split()
STRANGE = (
    None,
    True,
    False,
    "",
    "mean",
    "trunc",
    "floor",
    "none",
    "\0",
    "ij,jk->ik",
    [],
    (),
    {},
    b"x",
    1j,
    ...,
    slice(None),
    object,
)


@dataclass(frozen=True)
class Finding:
    """A call that crashed the process, did not return, or showed memory that it had not written."""

    number: int
    op: str
    how: str


def attack(framework: str, calls: int, first: int = 0, tier: str = TIER) -> Iterator[Finding]:
    """Make ``calls`` hostile calls; yield those that must not happen, and continue after a crash."""
    last = first + calls
    while first < last:
        number, op, how, found = _watch(framework, tier, first, last)
        yield from found
        if not how:
            return
        if not op:
            raise RuntimeError(f"cannot attack {framework}: the process {how} before its first call")
        yield Finding(number, op, how)
        first = number + 1


def _watch(framework: str, tier: str, first: int, last: int) -> tuple[int, str, str, list[Finding]]:
    """Run one process; return the call at which it ended, and how, or an empty string if it made all calls."""
    reader, writer = os.pipe()  # A separate pipe, because libraries may print to stdout and stderr.
    command = [sys.executable, "-m", "tests.facts.hostile", framework, tier, str(first), str(last), str(writer)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "GLIBC_TUNABLES": TUNABLES}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=environment, cwd=ROOT, pass_fds=(writer,), **quiet)
    os.close(writer)
    number, op, rest = first, "", b""
    found: list[Finding] = []
    while True:
        ready, _, _ = select.select([reader], [], [], WAIT)
        if not ready:
            process.kill()
            break
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            place, op, *shows = line.decode().split(" ", 2)
            number = int(place)
            found += [Finding(number, op, how) for how in shows]
    os.close(reader)
    code = process.wait(timeout=60)
    if not ready or code == -signal.SIGPROF:
        return number, op, f"takes more than {SECONDS:.0f} seconds", found
    return number, op, "" if code == 0 and number == last else f"ends the process with {code}", found


# --- the process that may crash


def main(framework: str, tier: str, first: int, last: int, progress: int) -> None:
    """Make the calls with the numbers from ``first`` to ``last``; write each to ``progress`` before it is made."""
    warnings.simplefilter("ignore")
    attacker = TorchAttacker(tier) if framework == "torch" else NumpyAttacker(tier)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_pages()[0] * resource.getpagesize() + MEMORY, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    before = _pages()[1]
    for number in range(first, last):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # Its signal ends the process, whatever it does.
        op, args, kwargs = attacker.call(number)
        os.write(progress, f"{number} {op.name}\n".encode())
        results = [attacker.make(op, args, kwargs, pattern) for pattern in PATTERNS]
        # A worker clears the memory that these two kinds of operations show, and draws other numbers for private data.
        differs = op.uninitialized or (op.reads_beyond and op.inplace) or (tier == PRIVATE and op.random)
        if None not in results and results[0] != results[1] and not differs:
            os.write(progress, f"{number} {op.name} shows memory that was not written\n".encode())
    os.write(progress, f"{last} \n".encode())
    os._exit(int((_pages()[1] - before) * resource.getpagesize() > GROWTH))


TUNABLES = "glibc.malloc.tcache_count=0"
"""Without this cache, every allocation gets the pattern."""
PATTERNS = (0x55, 0xAA)
"""What newly allocated memory is filled with."""
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
M_PERTURB, PROT_NONE = -6, 0


def fill_new_memory(pattern: int) -> None:
    """Let malloc fill memory with a pattern, and fill what numpy keeps for small arrays."""
    _libc.mallopt(M_PERTURB, pattern ^ 0xFF)
    kept = [np.full(size, pattern, np.uint8) for size in range(8, 264, 8) for _ in range(8)]
    kept.clear()


def guarded_bytes(size: int, at_end: bool) -> Any:
    """Return new memory that ends, or starts, where the process must not read."""
    page = mmap.PAGESIZE
    inner = max(-(-size // page), 1) * page
    start = _libc.mmap(
        None, inner + 2 * page, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANON, -1, 0
    )
    if start in (None, ctypes.c_void_p(-1).value):
        raise MemoryError("cannot map memory")
    _libc.mprotect(start, page, PROT_NONE)
    _libc.mprotect(start + page + inner, page, PROT_NONE)
    memory = (ctypes.c_char * size).from_address(start + page + (inner - size if at_end else 0))
    weakref.finalize(memory, _libc.munmap, start, inner + 2 * page)
    return memory


def guarded_array(made: Any, at_end: bool) -> Any:
    """Return an array of the same values, strides and dtype in memory of its own."""
    if made.dtype.hasobject or not made.dtype.itemsize:
        return made
    ends = [(size - 1) * stride for size, stride in zip(made.shape, made.strides, strict=True)] if made.size else []
    below = -sum(min(end, 0) for end in ends)
    size = below + sum(max(end, 0) for end in ends) + made.itemsize * bool(made.size)
    twin: Any = np.ndarray(made.shape, made.dtype, guarded_bytes(size, at_end), below, made.strides)
    if made.size:
        twin[...] = made
    return twin


def _pages() -> list[int]:
    """Return how many pages of memory the process has, and how many of them are in use."""
    return [int(field) for field in Path("/proc/self/statm").read_text().split()[:2]]


class Attacker:
    """Makes hostile calls out of samples."""

    surface: Any

    def __init__(self, tier: str) -> None:
        allowed = "reviewed" if tier == PRIVATE else tier
        ops = [op for op in self.surface.ops if op.tier == allowed and op.spelling in ("function", "method")]
        self.ops = [op for op in ops if re.search(ONLY, op.name)]
        self.samples: dict[str, Any] = {}
        self.numbers = count()
        self.worker = VirtualWorker(self.attach(), id="bob") if tier == PRIVATE else None

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
        if chance.random() < 0.1:
            args, kwargs = map_tensors(self.surface, lambda tensor: self.extreme(chance, tensor), (args, kwargs))
        self.at_end = chance.random() < 0.7
        if chance.random() < 0.1:  # by keyword, under the names that torch accepts for programs of numpy
            names = chance.choice((("input", "other"), ("x1", "x2"), ("a", "x2"), ("x", "other")))
            args, kwargs = args[2:], {**dict(zip(names, args, strict=False)), **kwargs}
        return op, args, kwargs

    def make(self, op: Any, args: Any, kwargs: Any, pattern: int) -> list[bytes] | None:
        """Make a call on copies of its arguments; return everything it shows, or None if it fails."""
        args, kwargs = map_tensors(self.surface, self.guarded, (args, kwargs))
        try:
            if self.worker is not None:
                return self.make_privately(self.worker, op, args, kwargs, pattern)
            fill_new_memory(pattern)
            torch.default_generator.manual_seed(0)
            result = op.run(*args, **kwargs)
        except Exception:  # noqa: BLE001  # arguments that an operation refuses
            return None
        shown = [leaf for leaf in leaves((result, args, kwargs)) if self.surface.is_tensor(leaf)]
        with contextlib.suppress(Exception):
            shown += self.differentiate(shown)
        try:
            return [self.show(leaf) for leaf in shown]
        except Exception:  # noqa: BLE001  # a tensor whose values cannot be read
            return None

    def make_privately(self, worker: VirtualWorker, op: Any, args: Any, kwargs: Any, pattern: int) -> list[bytes]:
        """Make a call on private data, as somebody who may not read it; return what the worker has stored."""
        worker.clear_objects()
        args, kwargs = map_tensors(self.surface, lambda tensor: self.load(worker, tensor), (args, kwargs))
        fill_new_memory(pattern)
        result = op.func(*args, **kwargs)
        pointers = [end_of(leaf) for leaf in leaves((result, args, kwargs)) if hasattr(leaf, "child")]
        return [self.show(plain_end(worker.object_store.entry(each._id_at_location).value)) for each in pointers]

    def load(self, worker: VirtualWorker, tensor: Any) -> Any:
        """Let the owner of a worker load a tensor that nobody else may read; return a pointer to it."""
        tag = f"#{next(self.numbers)}"
        worker.load_data([self.to_taggable(tensor).private_tensor(["alice"]).tag(tag)])
        return worker.search(tag)[0]

    def attach(self) -> Any:
        """Return the hook of the framework."""
        raise NotImplementedError

    def to_taggable(self, tensor: Any) -> Any:
        """Return a tensor that can be private, with the same memory."""
        return tensor

    def differentiate(self, shown: list[Any]) -> list[Any]:
        """Return the gradients of all leaves."""
        return []

    def guarded(self, tensor: Any) -> Any:
        """Return a copy of a tensor whose memory lies between guard pages."""
        raise NotImplementedError

    def show(self, tensor: Any) -> bytes:
        """Return the values of a tensor."""
        raise NotImplementedError

    def extreme(self, chance: random.Random, tensor: Any) -> Any:
        """Return a tensor of the same form that has one extreme integer everywhere."""
        raise NotImplementedError

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


def is_plain(tensor: Any) -> bool:
    return tensor.layout is torch.strided and not (tensor.is_quantized or tensor.is_nested or tensor.is_mkldnn)


def span(tensor: Any) -> int:
    """Return how many elements of memory a strided tensor needs."""
    if not tensor.numel():
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


class TorchAttacker(Attacker):
    """Attacks torch."""

    def __init__(self, tier: str) -> None:
        self.surface = TorchSurface()
        super().__init__(tier)

    def attach(self) -> Any:
        return TorchHook(torch, verbose=False)

    def guarded(self, tensor: Any) -> Any:
        if not is_plain(tensor):
            return self.surface.copy(tensor)
        made = torch.from_numpy(np.frombuffer(guarded_bytes(span(tensor) * tensor.element_size(), self.at_end), "u1"))
        twin = (
            made.view(tensor.dtype).as_strided(tensor.shape, tensor.stride()) if len(made) else tensor.detach().clone()
        )
        with contextlib.suppress(RuntimeError):  # Several elements are in one place.
            twin.copy_(tensor.detach())
        return twin.requires_grad_() if tensor.requires_grad else twin

    def differentiate(self, shown: list[Any]) -> list[Any]:
        made = [leaf for leaf in shown if leaf.grad_fn is not None]
        given = [leaf for leaf in shown if leaf.requires_grad and leaf.is_leaf]
        if not made or not given:
            return []
        return [*torch.autograd.grad(made, given, [torch.ones_like(leaf) for leaf in made], allow_unused=True)]

    def show(self, tensor: Any) -> bytes:
        if tensor is None:
            return b""
        made = tensor.detach()
        if made._is_zerotensor():
            return bytes(made.numel() * made.element_size())  # It has no memory.
        if not is_plain(made):
            parts = [getattr(made, part)() for part in _PARTS.get(made.layout, ())]
            return b"".join(map(self.show, parts))
        return made.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()

    def extreme(self, chance: random.Random, tensor: Any) -> Any:
        if not is_plain(tensor) or tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool:
            return tensor
        limits, chosen = torch.iinfo(tensor.dtype), chance.choice(EXTREMES)
        number = {"smallest": limits.min, "largest": limits.max, -1: max(-1, limits.min)}.get(chosen, chosen)
        return torch.full_like(tensor, number)

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
            elif kind in (3, 5) and made.is_floating_point():
                made = made.requires_grad_()
            elif kind == 4:
                made = torch.zeros(made.numel() + 2, dtype=made.dtype).as_strided(made.shape, (1,) * made.dim())
        return made


class NumpyAttacker(Attacker):
    """Attacks numpy."""

    def __init__(self, tier: str) -> None:
        np.seterr(all="ignore")
        self.surface = NumpySurface()
        super().__init__(tier)

    def attach(self) -> Any:
        return NumpyHook(np, verbose=False)

    def to_taggable(self, tensor: Any) -> Any:
        return tensor.view(SyftArray)

    def guarded(self, tensor: Any) -> Any:
        return guarded_array(tensor, self.at_end) if isinstance(tensor, np.ndarray) else tensor

    def show(self, tensor: Any) -> bytes:
        return np.asarray(tensor).tobytes()

    def extreme(self, chance: random.Random, tensor: Any) -> Any:
        if tensor.dtype.kind not in "iu":
            return tensor
        limits, chosen = np.iinfo(tensor.dtype), chance.choice(EXTREMES)
        number = {"smallest": limits.min, "largest": limits.max, -1: max(-1, limits.min)}.get(chosen, chosen)
        return np.full(tensor.shape, number, tensor.dtype)

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
    if len(sys.argv) == 6:
        main(*sys.argv[1:3], *map(int, sys.argv[3:]))
    else:
        began = time.perf_counter()
        for found in attack(sys.argv[1], int(sys.argv[2])):
            print(found, flush=True)  # noqa: T201  # a program
        print(f"{time.perf_counter() - began:.1f} s")  # noqa: T201
