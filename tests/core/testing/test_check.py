"""`syft-core plugins --check NAME` runs the suite without a test file and prints promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import toy
from distributions import install, run
from syft_toy.hook import ToyHook

from syft_core.testing.calls import collect_sample
from syft_core.testing.section import Section

CHECK = "import sys; from syft_core.cli import main; sys.exit(main(['plugins', '--check', *sys.argv[1:]]))"
BROKEN = """
    from syft_core.hook.hook import FrameworkHook
    from syft_core.plugins.backend import Backend
    from syft_core.plugins.hookspecs import hookimpl

    @hookimpl
    def register_backends(backends):
        backend = Backend("careless", "toy", "careless:Hook", "pip install toy", suite="careless:Suite")
        backends.register("careless", backend)

    def __getattr__(name):
        from syft_toy.hook import ToyHook
        from syft_toy.testing import ToyConformance

        class Hook(ToyHook):
            def create_wrapper(self, wrapper_type=None):
                return ToyHook.create_wrapper(self, None)

        class Suite(ToyConformance):
            hook_class = Hook

        return {"Hook": Hook, "Suite": Suite}[name]
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder in which the toy backend is installed."""
    install(tmp_path, "syft-toy", {"toy": "syft_toy.plugin"})
    return tmp_path


def check(site: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run(site, CHECK.replace("sys.argv[1:]", repr(list(options))))


@pytest.mark.slow
def test_every_promise_of_a_correct_backend_is_listed_as_kept(site: Path) -> None:
    (site / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")  # the settings of another project

    done = check(site, "toy")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("Hook:\n  holds        unhooking leaves the framework exactly as it was\n")
    assert "broken" not in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_broken_promise_names_the_method_and_shows_no_traceback(site: Path) -> None:
    install(site, "syft-careless", {"careless": "careless"}, careless=BROKEN)

    done = check(site, "careless", "--seconds", "2")

    assert done.returncode == 1, done.stderr
    assert "  broken       a wrapper of an invalid type is refused\n" in done.stdout
    assert "fix `FrameworkHook.create_wrapper` (docs/backends.md)" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_what_there_is_no_time_for_is_listed_as_not_checked(site: Path) -> None:
    done = check(site, "toy", "--seconds", "0.000001", "--seed", "7")

    assert done.returncode == 0, done.stderr
    assert "  not checked  unhooking leaves the framework exactly as it was\n      the time is over\n" in done.stdout
    assert "holds" not in done.stdout


def test_a_sample_of_the_operations_is_the_same_for_the_same_seed() -> None:
    with ToyHook(toy) as hook:
        one, other, third = [[call.op.name for call in collect_sample(hook, 600.0, seed)[0]] for seed in (1, 1, 2)]
        everything, none_left = collect_sample(hook, None, 0)
        few, left = collect_sample(hook, 0.0, 1)

    assert one == other != third
    assert sorted(one) == sorted(call.op.name for call in everything)
    assert (none_left, len(few) < len(everything), left > 20) == (0, True, True)
    assert {call.op.operation for call in few} >= {"add", "sub"}


def test_a_suite_that_is_not_one_is_refused(site: Path) -> None:
    install(
        site, "odd", {"odd": "odd"}, odd=BROKEN.replace("careless:Suite", "careless:Hook").replace("careless", "odd")
    )

    done = check(site, "odd")

    assert done.returncode == 1
    assert "'odd:Hook' is not a subclass of BackendConformance" in done.stderr


def test_a_limited_time_must_be_positive(site: Path) -> None:
    done = check(site, "toy", "--seconds", "0")

    assert done.returncode == 2
    assert "expected a positive number of seconds, got 0" in done.stderr


def test_without_pytest_the_suite_says_what_to_install(tmp_path: Path) -> None:
    program = "import sys\nsys.modules['pytest'] = None\nimport syft_core.testing"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=dict(os.environ), timeout=120
    )

    assert "cannot use syft_core.testing: pytest is not installed; run `pip install pytest`" in done.stderr


def test_the_attributes_that_limit_a_run_are_off_by_default() -> None:
    assert Section.seconds is None
    assert Section.untried == 0


@pytest.mark.slow
def test_a_sample_keeps_the_promises_and_counts_what_was_not_tried(site: Path) -> None:
    hasty = BROKEN.replace("hook_class = Hook", "seconds = 0.0").replace("careless", "hasty")
    install(site, "hasty", {"hasty": "hasty"}, hasty=hasty)

    done = check(site, "hasty", "--seed", "3")

    assert done.returncode == 0, done.stdout
    assert " operations were not tried; --seed 3 tries the same ones again\n" in done.stdout
