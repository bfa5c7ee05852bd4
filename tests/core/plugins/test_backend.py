from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy import plugin as toy_plugin
from syft_toy.hook import ToyHook

from syft_core.exceptions import DependencyError, PluginError
from syft_core.plugins.backend import Backend


def card(name: str = "card", framework: str = "toy", hook: str = "syft_toy.hook:ToyHook", **more: Any) -> Backend:
    return Backend(name, framework, hook, "pip install it", **more)


def test_a_backend_loads_its_hook() -> None:
    assert toy_plugin.BACKEND.load() is ToyHook
    assert toy_plugin.BACKEND.import_framework() is toy
    assert toy_plugin.BACKEND.is_installed()


@pytest.mark.parametrize("framework", ["no_such_framework", "no_such_framework.part", "toy.no_such_part"])
def test_a_backend_without_its_framework_shows_the_install_command(framework: str) -> None:
    backend = card(framework=framework)

    assert not backend.is_installed()
    with pytest.raises(DependencyError) as caught:
        backend.load()
    assert str(caught.value) == (
        f"cannot load the 'card' backend: {framework!r} is not installed; run `pip install it`"
    )


@pytest.mark.parametrize("place", ["no_such_module:Hook", "syft_toy.hook:NoSuchHook"])
def test_a_hook_that_cannot_be_imported_is_reported_as_a_plugin_error(place: str) -> None:
    with pytest.raises(PluginError, match=f"cannot use the plugin 'card': '{place}' cannot be imported"):
        card(hook=place).load()


@pytest.mark.parametrize("place", ["syft_toy.attributes:ToyAttributes", "toy:add"])
def test_a_hook_that_is_not_a_framework_hook_is_reported_as_a_plugin_error(place: str) -> None:
    with pytest.raises(PluginError, match=f"cannot use the plugin 'card': '{place}' is not a FrameworkHook"):
        card(hook=place).load()
