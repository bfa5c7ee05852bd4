from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest
import toy
from toy_layers import under, values

from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor

pytestmark = pytest.mark.usefixtures("hook")

LOGGER = "syft_core.tensors.logging"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, logger=LOGGER)
    return lambda: [record.getMessage() for record in caplog.records if record.name == LOGGER]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda x: x.add(x), "Log method add"),
        (lambda x: x + x, "Log method __add__"),
        (lambda x: x.sum(), "Log method sum"),
        (lambda x: x[0], "Log method __getitem__"),
        (lambda x: toy.add(x, x), "Log function toy.add"),
        (lambda x: toy.mul(x, 2), "Log function toy.mul"),
        (lambda x: toy.nn.relu(x), "Log function toy.nn.relu"),
        (lambda x: toy.cat([x, x]), "Default log toy.cat"),
        (lambda x: toy.tanh(x), "Default log toy.tanh"),
    ],
)
def test_a_call_is_logged_with_exactly_one_line(lines: Any, call: Any, line: str) -> None:
    call(LoggingTensor().on(toy.Vector([1.0, 2.0])))

    assert lines() == [line]


def test_attributes_are_not_logged(lines: Any) -> None:
    _ = LoggingTensor().on(toy.Vector([1.0])).shape

    assert lines() == []


def test_the_level_is_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=LOGGER)

    LoggingTensor().on(toy.Vector([1.0])).sum()

    assert [record.levelno for record in caplog.records if record.name == LOGGER] == [logging.INFO]


def test_no_value_is_ever_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    x = LoggingTensor().on(toy.Vector([123456.75]))

    toy.cat([x + 765432.5, x.clip(123456.75)])

    assert "123456" not in caplog.text
    assert "765432" not in caplog.text


def test_logging_changes_neither_values_nor_layers() -> None:
    x = LoggingTensor().on(PlusIsMinusTensor().on(toy.Vector([5.0])))

    result = toy.add(x, 2.0) * 2

    assert str(result) == "(Wrapper)>LoggingTensor>PlusIsMinusTensor>Vector([6.0])"


def test_a_layer_under_another_layer_logs_too(lines: Any) -> None:
    x = PlusIsMinusTensor().on(LoggingTensor().on(toy.Vector([5.0])))

    result = x + 1

    assert str(result) == "(Wrapper)>PlusIsMinusTensor>LoggingTensor>Vector([4.0])"
    assert lines() == ["Log method __sub__"]


def test_manual_add_shows_what_the_decorators_do(lines: Any) -> None:
    layer = under(LoggingTensor(), 1.0)

    result = layer.manual_add(under(LoggingTensor(), 2.0))

    assert type(result) is LoggingTensor
    assert values(result) == [3.0]
    assert lines() == ["Log method manual_add"]


def test_nothing_is_logged_by_default() -> None:
    program = """
import toy
from syft_toy.hook import ToyHook
from syft_core.tensors.logging import LoggingTensor
with ToyHook(toy):
    x = LoggingTensor().on(toy.Vector([1.0]))
    toy.add(x, x).sum()
"""
    from_here = {"PYTHONPATH": ":".join(sys.path)}

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=from_here, timeout=120
    )

    assert (done.stdout, done.stderr) == ("", "")
