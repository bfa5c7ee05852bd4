"""Samples of torch operations out of torch's own testing tables."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

from syft_core.hook.attributes import Op, OpTable

from .checks import Case
from .torch_samples import ARBITRARY

SAMPLES = 3
"""How many samples of one function are used."""
LOOK_AHEAD = 10
"""How many to examine to find samples with different argument types."""
VARIANTS = ("op", "method_variant", "inplace_variant", "operator_variant", "inplace_operator_variant")
DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)


def opinfo_cases(op: Op) -> list[Case]:
    """Return cases for ``op`` from torch's samples: those of the function itself, or of functions of the same name."""
    by_func, by_name = _index()
    namesake = op.attr.rstrip("_") if op.inplace else op.attr
    numbers = by_func.get(op.func) or by_name.get(namesake, [])
    return [
        Case(op.name, op.func, (sample.input, *sample.args), dict(sample.kwargs), op.name in ARBITRARY, guess=True)
        for number in numbers
        for sample in _samples(number)
    ]


def other_spellings(ops: OpTable) -> dict[str, tuple[int, str]]:
    """Locate torch's samples of spellings that are not functions in ``ops``: operators, and compositions of them."""
    return {
        f"{_full_name(info)}:{variant}": (number, variant)
        for number, info in enumerate(op_db)
        for variant in VARIANTS
        if getattr(info, variant) is not None and getattr(info, variant) not in ops.by_func
    }


def spelling_cases(name: str, number: int, variant: str) -> list[Case]:
    """Return the cases of one other spelling."""
    info = op_db[number]
    form_only = f"torch.Tensor.{info.name}" in ARBITRARY
    return [
        Case(name, getattr(info, variant), (sample.input, *sample.args), dict(sample.kwargs), form_only, guess=True)
        for sample in _samples(number)
    ]


def _full_name(info: Any) -> str:
    """Return what ``info.full_name`` is in newer versions of torch."""
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else str(info.name)


@functools.cache
def _index() -> tuple[dict[Any, list[int]], dict[str, list[int]]]:
    """Return where in torch's list each function and each name is."""
    by_func: dict[Any, list[int]] = defaultdict(list)
    by_name: dict[str, list[int]] = defaultdict(list)
    for number, info in enumerate(op_db):
        for spelling in (info, *info.aliases):
            for func in (spelling.op, spelling.method_variant, spelling.inplace_variant):
                if func is not None:
                    by_func[func].append(number)
        for name in {info.name, info.aten_name, *[alias.name for alias in info.aliases]}:
            by_name[name.rsplit(".", 1)[-1]].append(number)
    return by_func, by_name


@functools.cache
def _samples(number: int) -> list[Any]:
    info = op_db[number]
    dtype = next((d for d in DTYPES if d in info.dtypes), None)
    if dtype is None:
        return []
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(0)
        # `info.sample_inputs` would walk the stack for the name of the running test, at each call.
        candidates = islice(info.sample_inputs_func(info, "cpu", dtype, False), LOOK_AHEAD)
        return list(islice(_most_different(candidates), SAMPLES))


def _most_different(samples: Iterable[Any]) -> Iterator[Any]:
    """Yield the samples whose arguments have new types first, then the others."""
    seen: set[str] = set()
    rest = []
    for sample in samples:
        kinds = str([type(sample.input), *map(type, sample.args), *map(repr, sample.kwargs)])
        if kinds in seen:
            rest.append(sample)
        else:
            seen.add(kinds)
            yield sample
    yield from rest
