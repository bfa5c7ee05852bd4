from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from distributions import run
from syft_toy.hook import ToyHook

import syft_core as sy
from syft_core import exceptions
from syft_core.hook import hook_args
from syft_core.hook.hook import FrameworkHook
from syft_core.tensors.logging import LoggingTensor


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the loaded modules after importing the facade, and after importing all of the core.

    The frameworks are stand-ins, so that the test means the same where none is installed.
    """
    site: Path = tmp_path_factory.mktemp("site")
    for framework in ("torch", "numpy"):
        (site / f"{framework}.py").write_text("")
    done = run(
        site,
        """
        import importlib, json, pkgutil, sys
        import syft_core
        facade = sorted(sys.modules)
        names = [module.name for module in pkgutil.walk_packages(syft_core.__path__, "syft_core.")]
        for name in names:
            if name.rpartition(".")[2] != "__main__":
                importlib.import_module(name)
        print(json.dumps({"facade": facade, "names": names, "all": sorted(sys.modules)}))
        """,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_importing_the_facade_imports_nothing_else_of_the_core(imported: dict[str, Any]) -> None:
    assert [name for name in imported["facade"] if name.startswith("syft_")] == ["syft_core"]
    assert "pluggy" not in imported["facade"]


def test_importing_all_of_the_core_imports_no_framework_and_no_backend(imported: dict[str, Any]) -> None:
    packages = {name.partition(".")[0] for name in imported["all"]}

    backends = {name for name in imported["all"] if name.startswith(("syft_torch.", "syft_numpy."))}

    assert packages.isdisjoint({"torch", "numpy", "syft_toy", "toy"})
    assert backends <= {"syft_torch.plugin", "syft_numpy.plugin"}  # They describe what the suite has sections for.
    assert {"syft_core.hook.hook", "syft_core.plugins.manager", "syft_core.serde"} <= set(imported["names"])


def test_names_of_the_core_are_found_where_users_look() -> None:
    assert sy.LoggingTensor is LoggingTensor
    assert sy.FrameworkHook is FrameworkHook
    assert sy.hook_args is hook_args
    assert sy.exceptions is exceptions


def test_dir_lists_the_core_and_what_the_backends_offer() -> None:
    names = dir(sy)

    assert {"LoggingTensor", "local_worker", "overloaded", "TorchHook", "NumpyHook"} <= set(names)
    assert names == sorted(names)


@pytest.mark.parametrize("name", sorted(sy._NAMES))
def test_every_name_of_the_core_is_where_the_table_says(name: str) -> None:
    assert getattr(sy, name) is not None
    assert name in dir(sy)


def test_the_version_is_that_of_the_distribution() -> None:
    assert sy.__version__.count(".") == 2


def test_an_unknown_name_is_explained() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = sy.Nonsense

    assert str(caught.value) == (
        "cannot find 'Nonsense' in syft_core: neither the core nor an installed plugin has it; "
        "`syft-core plugins` lists the backends"
    )
    assert not hasattr(sy, "Nonsense")
    assert not hasattr(sy, "_private_nonsense")


def test_names_that_change_are_looked_up_each_time(hook: ToyHook) -> None:
    during = (sy.local_worker, sy.current_hook(), sy.toy)

    hook.unhook()

    assert during == (hook.local_worker, hook, hook.attributes)
    assert (sy.local_worker, sy.current_hook()) == (None, None)
    assert not hasattr(sy, "toy")
