"""The examples in the guide to private training run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("dp_accounting")

from syft_torch import federated as fl
from syft_torch.federated.private_steps.accounting import PrivateStep, find_epsilon

PAGE = Path(__file__).parents[4] / "docs" / "private-training.md"
ROW = re.compile(r"^\| ([\d,]+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)


def test_the_examples_on_the_page_run() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)

    assert tried
    assert not failed


def test_the_numbers_of_the_table_are_right() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert len(rows) == 5
    for records, batch, *shown in rows:
        samples = int(records.replace(",", ""))
        delta = 1e-6 if samples == 100_000 else 1e-5
        for text, (multiplier, epochs) in zip(shown, [(1.1, 5), (1.1, 20), (2.0, 5), (2.0, 20)], strict=True):
            draws = fl.SampleDP(1.0, multiplier, delta).plan(samples, epochs, int(batch))
            exact = find_epsilon({PrivateStep(draws.rate, multiplier): draws.steps}, delta)
            assert exact <= float(text) < exact + 0.11
