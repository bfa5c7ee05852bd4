"""Run the conformance suite for an installed backend, without a test file, and report its promises."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from syft_core.exceptions import PluginError
from syft_core.plugins.backend import Backend
from syft_core.testing.conformance import BackendConformance
from syft_core.testing.section import ConformanceError, MissingOverrideError, Section

HOLDS, BROKEN, NOT_CHECKED = "holds", "broken", "not checked"
_TIME_IS_OVER = "the time is over"
_FILE = """\
from syft_core.testing import check

TestBackend = check.suite
"""
suite: type[Section] = Section
"""The suite that runs; the file that pytest collects imports it from here."""


@dataclass
class Promise:
    """One check of the suite, with all its parameters."""

    section: str
    text: str
    passed: int = 0
    broken: list[str] = field(default_factory=list)
    """Why it does not hold: one text for each cause."""
    skipped: list[str] = field(default_factory=list)
    """Why it was not checked, or only in part."""

    @property
    def state(self) -> str:
        """Whether the promise holds."""
        return BROKEN if self.broken else HOLDS if self.passed else NOT_CHECKED

    def __str__(self) -> str:
        causes = self.broken or self.skipped
        part = " in part" if self.state == HOLDS and self.skipped else ""
        return "\n    ".join([f"{self.state + part:<13}{self.text}", *"\n".join(causes).splitlines()])


def check_backend(
    backend: Backend, show: Callable[[Promise], None], seconds: float | None = None, seed: int = 0
) -> tuple[list[Promise], int]:
    """Run the suite for a backend; return its promises, and how many operations a limited run did not try.

    ``show`` is called with each promise as soon as it is checked. With ``seconds``, the run tries operations in a
    random order for a part of that time, and checks no more promises when it is over.
    """
    global suite  # noqa: PLW0603  # the way to the module that pytest imports
    suite = _make_suite(backend, seconds, seed)
    report = _Report(show, seconds)
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_backend.py").write_text(_FILE, encoding="utf-8")
        Path(folder, "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        options = ["-p", "no:terminal", "-p", "no:cacheprovider", "-c", str(Path(folder, "pytest.ini"))]
        pytest.main([*options, "--rootdir", folder, folder], plugins=[report])
    report.finish()
    if not report.promises:
        raise PluginError.broken(backend.name, "its conformance suite has no checks")
    return report.promises, suite.untried


def _make_suite(backend: Backend, seconds: float | None, seed: int) -> type[Section]:
    """Return the backend's own suite, or the suite with its defaults."""
    base = backend.resolve(backend.suite) if backend.suite else BackendConformance
    if not (isinstance(base, type) and issubclass(base, Section)):
        raise PluginError.broken(backend.name, f"{backend.suite!r} is not a subclass of BackendConformance")
    given = {} if backend.suite else {"framework": backend.import_framework(), "hook_class": backend.load()}
    limits = {} if seconds is None else {"seconds": seconds / 4, "seed": seed}
    return type("TestBackend", (base,), {**given, **limits})


class _Report:
    """A plugin of pytest that collects what each check found."""

    def __init__(self, show: Callable[[Promise], None], seconds: float | None) -> None:
        self.promises: list[Promise] = []
        self._show = show
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        """Check the sections in the order in which authors write what they are about."""
        items.sort(key=lambda item: suite.__mro__.index(_section_of(item)))

    def pytest_runtest_setup(self) -> None:
        """Leave out the checks for which no time is left."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            pytest.skip(_TIME_IS_OVER)

    def pytest_runtest_makereport(self, item: pytest.Function, call: pytest.CallInfo[None]) -> None:
        """Note the outcome of a check with one set of parameters."""
        promise = self._promise_of(item)
        if call.excinfo is None:
            promise.passed += call.when == "call"
            return
        error = call.excinfo.value
        causes = promise.skipped if isinstance(error, pytest.skip.Exception) else promise.broken
        cause = _describe(error)
        if cause not in causes:
            causes.append(cause)

    def _promise_of(self, item: pytest.Function) -> Promise:
        section = _section_of(item).__name__.removesuffix("Section")
        text = item.originalname.removeprefix("test_").replace("_", " ")
        if not self.promises or (self.promises[-1].section, self.promises[-1].text) != (section, text):
            self.finish()
            self.promises.append(Promise(section, text))
        return self.promises[-1]

    def finish(self) -> None:
        """Show the last promise: all its parameters have been tried."""
        if self.promises:
            self._show(self.promises[-1])


def _section_of(item: pytest.Function) -> type:
    """Return the section that makes a promise, also if the backend's suite overrides the check."""
    return next(section for section in reversed(suite.__mro__) if item.originalname in vars(section))


def _describe(error: BaseException) -> str:
    """Return the text of a failure: that of the suite names the method to fix."""
    if isinstance(error, ConformanceError):
        return str(error).partition(": ")[2]
    if isinstance(error, MissingOverrideError | pytest.skip.Exception | pytest.fail.Exception):
        return str(error)
    return f"{type(error).__name__}: {error}"
