from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from syft_toy import plugin as toy_plugin

from syft_core import cli
from syft_core.hook import hook as hooking
from syft_core.hook.hook import current_hook
from syft_core.plugins.backend import Backend
from syft_core.plugins.hookspecs import hookimpl
from syft_core.plugins.manager import PluginManager


class FarPlugin:
    """Registers a backend whose framework is not installed."""

    @hookimpl
    def register_backends(self, backends: Any) -> None:
        backends.register("far", Backend("far", "far_away_framework", "far:Hook", "pip install far-away"))


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> PluginManager:
    """Make the command line use the plugins of the test instead of the installed ones."""
    monkeypatch.setattr(hooking, "_listeners", [])
    manager = PluginManager()
    monkeypatch.setattr(cli, "plugin_manager", lambda: manager)
    return manager


def test_the_demo_runs_on_an_installed_framework(
    manager: PluginManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.register(toy_plugin, "toy")
    manager.register(FarPlugin(), "far")

    code = cli.main(["demo", "--fast", "--page", str(tmp_path / "page.html")])

    shown = capsys.readouterr().out
    assert code == 0
    assert "Data you never see, on toy 1.2" in shown
    assert "demo far" not in shown
    assert "Who computed what" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert current_hook() is None


def test_the_demo_of_a_named_backend(
    manager: PluginManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.register(toy_plugin, "toy")

    assert cli.main(["demo", "toy", "--fast", "--page", str(tmp_path / "page.html")]) == 0
    assert "on toy 1.2" in capsys.readouterr().out


def test_only_the_demo_of_torch_trains_with_noise(manager: PluginManager, capsys: pytest.CaptureFixture[str]) -> None:
    manager.register(toy_plugin, "toy")

    assert cli.main(["demo", "toy", "--fast", "--private-dp"]) == 1
    assert "cannot train with noise in the demo of toy: only that of torch can" in capsys.readouterr().err
    assert current_hook() is None


def test_an_interrupted_demo_says_that_its_workers_have_stopped(
    manager: PluginManager, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.register(toy_plugin, "toy")

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run_demo", interrupt)

    assert cli.main(["demo", "toy", "--fast"]) == 130
    assert "all of its workers have stopped" in capsys.readouterr().err


def test_the_demo_of_a_missing_framework_shows_the_install_command(
    manager: PluginManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.register(FarPlugin(), "far")

    code = cli.main(["demo", "far", "--fast"])

    assert code == 1
    assert capsys.readouterr().err == (
        "syft-core: cannot load the 'far' backend: 'far_away_framework' is not installed; run `pip install far-away`\n"
    )


def test_the_demo_without_any_framework_shows_the_install_commands(
    manager: PluginManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.register(FarPlugin(), "far")

    code = cli.main(["demo", "--fast"])

    assert code == 1
    assert capsys.readouterr().err == "syft-core: no framework is installed; run `pip install far-away`\n"


def test_the_demo_of_an_unknown_backend_suggests_similar_names(
    manager: PluginManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.register(toy_plugin, "toy")

    code = cli.main(["demo", "toys", "--fast"])

    assert code == 1
    assert capsys.readouterr().err.startswith(
        "syft-core: cannot find 'toys' in 'backends': it is not registered; did you mean 'toy'?"
    )


@pytest.mark.parametrize("arguments", [[], ["nonsense"]])
def test_an_unknown_command_shows_the_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)

    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: syft-core ")


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["--help"])

    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "plugins" in shown
    assert "demo" in shown


def test_the_installed_command_runs_this_cli() -> None:
    command = Path(sys.executable).with_name("syft-core")

    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True, timeout=120)

    assert done.stdout == f"syft-core {version('syft-core')}\n"
