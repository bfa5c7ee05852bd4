"""Call operations with hostile arguments in a separate process: none crashes it, or shows memory of others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
import torch

from syft_core.hook.guards import limit_integers
from syft_torch.attributes import TorchAttributes
from syft_torch.versions import UNCHECKABLE

from .hostile import PATTERNS, PRIVATE, ROOT, TUNABLES, attack

CALLS = int(os.environ.get("SYFT_HOSTILE_CALLS", "3000"))


@pytest.mark.parametrize("tier", ["reviewed", "public", PRIVATE])
@pytest.mark.parametrize("framework", ["torch", "numpy"])
@pytest.mark.slow
def test_no_operation_kills_or_hangs_the_process_or_accesses_other_memory(framework: str, tier: str) -> None:
    assert [*attack(framework, CALLS if tier == "reviewed" else CALLS // 2, tier=tier)] == []


def test_memory_outside_of_a_tensor_cannot_be_read() -> None:
    for at_end, place in ((True, 3), (False, -1)):
        program = (
            "import numpy as np; from tests.facts.hostile import guarded_array;"
            f"x = guarded_array(np.ones(3), {at_end}); print(x.sum(), flush=True);"
            f"np.lib.stride_tricks.as_strided(x[{place}:{place} + 1] if {place} > 0 else x, (2,), (8 * {place},)).sum()"
        )
        found = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
        )
        assert (found.stdout.strip(), found.returncode) == ("3.0", -signal.SIGSEGV)


def test_memory_that_was_not_written_is_recognized() -> None:
    program = (
        "import numpy as np, torch; from tests.facts.hostile import PATTERNS, fill_new_memory\n"
        "for pattern in PATTERNS:\n"
        "    fill_new_memory(pattern)\n"
        "    print(torch.empty(64, dtype=torch.uint8).unique().tolist(), np.unique(np.empty(64, np.uint8)).tolist())\n"
    )
    environment = {**os.environ, "GLIBC_TUNABLES": TUNABLES}

    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert found.stdout.split("\n")[:2] == [f"[{pattern}] [{pattern}]" for pattern in PATTERNS]


def test_a_number_that_would_crash_an_operation_is_refused() -> None:
    guarded = limit_integers(max, 100)

    assert guarded(1, 100) == 100
    with pytest.raises(OverflowError, match="cannot run 'max' with an integer above 100: use a smaller one"):
        guarded(1, 101)
    with pytest.raises(OverflowError, match="with an integer above 100"):
        guarded([1, [-101]], [2])


@pytest.mark.parametrize(("size", "length"), [(5000, 2), (13, 7), (1, 2**40), (0, 65), (2, torch.tensor(64))])
def test_combinations_with_a_large_grid_are_refused(size: int, length: Any) -> None:
    combine = TorchAttributes(torch).ops.look_up("torch.combinations").run

    named = [((), {name: torch.ones(size), "r": length}) for name in ("input", "x", "a", "x1")]
    for args, kwargs in (((torch.ones(size), length), {}), *named):
        with pytest.raises(OverflowError, match=f"cannot run 'combinations' of {int(length)} out of {size} elements: "):
            combine(*args, **kwargs)


def test_combinations_with_a_small_grid_are_those_of_torch() -> None:
    x, combine = torch.arange(5.0), TorchAttributes(torch).ops.look_up("torch.combinations").run

    for args, kwargs in (((x,), {}), ((x, 3), {}), ((x,), {"r": 4, "with_replacement": True}), ((x, 0), {})):
        assert combine(*args, **kwargs).equal(torch.combinations(*args, **kwargs))
    with pytest.raises(RuntimeError, match="non-negative"):
        combine(torch.ones(0), -1)


@pytest.mark.skipif(bool(UNCHECKABLE), reason="these kernels are off: this torch cannot check their arguments")
@pytest.mark.parametrize("heads", [0, False, torch.tensor(0)])
def test_attention_without_heads_is_refused(heads: object) -> None:
    x, weight, bias = torch.ones(2, 3, 4), torch.ones(12, 4), torch.ones(12)
    attention = TorchAttributes(torch).ops.look_up("torch._native_multi_head_attention").run

    with pytest.raises(ValueError, match="cannot run '_native_multi_head_attention' without features or heads"):
        attention(x, x, x, 4, heads, weight, bias, torch.ones(4, 4), torch.ones(4))
