"""Plugins as installed distributions, good and broken ones, in a separate process."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from distributions import install, run

LIST = "import sys; from syft_core.cli import main; sys.exit(main(['plugins']))"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one good distribution, one whose framework is missing, and five broken ones."""
    site = tmp_path_factory.mktemp("site")
    install(site, "syft-toy", {"toy": "syft_toy.plugin"})
    install(
        site,
        "acme-backends",
        {"acme": "acme_plugin"},
        acme_plugin="""
            from syft_core.plugins.backend import Backend
            from syft_core.plugins.hookspecs import hookimpl

            @hookimpl
            def register_backends(backends):
                backends.register("far", Backend(
                    "far", "far_away_framework", "acme_hook:FarHook", "pip install far-away",
                    exports={"FarHook": "acme_hook:FarHook"}))

            @hookimpl
            def register_operations(attributes):
                attributes.allow(triple, "toy.triple")

            def triple(x):
                return x * 3
        """,
    )
    install(site, "raising", {"raising": "raising_plugin"}, raising_plugin="raise RuntimeError('out of luck')")
    install(site, "gone", {"gone": "no_such_module_anywhere"})
    install(
        site,
        "wrong-signature",
        {"wrong_signature": "wrong_signature_plugin"},
        wrong_signature_plugin="""
            from syft_core.plugins.hookspecs import hookimpl

            @hookimpl
            def register_backends(backend_list):
                pass
        """,
    )
    install(
        site,
        "unknown-hook",
        {"unknown_hook": "unknown_hook_plugin"},
        unknown_hook_plugin="""
            from syft_core.plugins.hookspecs import hookimpl

            @hookimpl
            def register_backend(backends):
                pass
        """,
    )
    install(
        site,
        "failing",
        {"failing": "failing_plugin"},
        failing_plugin="""
            from syft_core.plugins.hookspecs import hookimpl

            @hookimpl
            def register_backends(backends):
                raise KeyError("what was it")
        """,
    )
    return site


@pytest.fixture(scope="module")
def found(site: Path) -> dict[str, Any]:
    """Return the plugins as a program sees them."""
    done = run(
        site,
        """
        import json, sys
        import syft_core as sy
        from syft_core.plugins.manager import plugin_manager

        def text_of(call):
            try:
                call()
            except Exception as error:
                return [type(error).__name__, isinstance(error, ImportError), str(error)]

        manager = plugin_manager()
        report = {
            "loaded": [name for name in sys.modules if name.endswith(".hook") and not name.startswith("syft_core.")],
            "frameworks": sorted({"toy", "torch", "numpy"} & set(sys.modules)),
            "backends": sorted(manager.backends),
            "provided": manager.provided,
            "failures": {name: str(error) for name, error in manager.failures.items()},
            "origins": manager.origins,
            "far": text_of(lambda: sy.FarHook),
            "load_far": text_of(lambda: sy.load_backend("far")),
            "load_raising": text_of(lambda: sy.load_backend("raising")),
            "load_unknown": text_of(lambda: sy.load_backend("toi")),
            "unknown": text_of(lambda: sy.Nonsense),
            "dir": dir(sy),
        }
        import toy
        with sy.ToyHook(toy) as hook:
            x = sy.LoggingTensor().on(toy.Vector([1.0, 2.0]))
            report["works"] = str(x + x)
            report["attributes"] = sy.toy is hook.attributes
            report["worker"] = sy.local_worker is hook.local_worker
            report["triple"] = str(hook.get_hooked_func("toy.triple")(x))
        report["same"] = sy.load_backend("toy") is sy.ToyHook
        report["unhooked"] = text_of(lambda: sy.toy)
        print(json.dumps(report))
        """,
        "-W",
        "error",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def listing(site: Path) -> subprocess.CompletedProcess[str]:
    return run(site, LIST)


def test_discovering_loads_no_framework_and_no_hook(found: dict[str, Any]) -> None:
    assert found["loaded"] == []
    assert found["frameworks"] == []


def test_every_good_backend_is_found_despite_broken_ones(found: dict[str, Any]) -> None:
    assert {"toy", "far", "torch", "numpy"} == set(found["backends"])


def test_a_plugin_and_its_backend_may_have_different_names(found: dict[str, Any]) -> None:
    assert found["provided"]["acme"] == ["far"]
    assert found["origins"]["acme"] == "acme-backends 1.0"


def test_a_backend_works_through_the_facade_despite_broken_ones(found: dict[str, Any]) -> None:
    assert found["works"] == "(Wrapper)>LoggingTensor>Vector([2.0, 4.0])"
    assert found["same"]
    assert "ToyHook" in found["dir"]


def test_the_facade_has_the_attributes_of_a_hooked_framework_under_its_name(found: dict[str, Any]) -> None:
    assert found["attributes"]
    assert found["worker"]
    assert found["unhooked"][2].startswith("cannot find 'toy' in syft_core: ")


def test_a_plugin_may_add_operations_to_the_framework_of_another(found: dict[str, Any]) -> None:
    assert found["triple"] == "(Wrapper)>LoggingTensor>Vector([3.0, 6.0])"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raising", "it cannot be imported (RuntimeError: out of luck)"),
        ("gone", "it cannot be imported (ModuleNotFoundError: No module named 'no_such_module_anywhere')"),
        (
            "unknown_hook",
            "it implements the unknown hook 'register_backend' "
            "(there are register_backends, register_codecs, register_commands, register_errors, register_features, "
            "register_kinds, "
            "register_messages, register_operations, register_rules, register_tensor_types)",
        ),
        ("failing", "'what was it'"),
    ],
)
def test_a_broken_plugin_is_reported_with_the_reason(found: dict[str, Any], name: str, reason: str) -> None:
    assert found["failures"][name] == (
        f"cannot use the plugin {name!r}: {reason}; run `syft-core plugins` to list all plugins"
    )


def test_a_plugin_with_a_wrong_signature_is_reported_with_the_argument(found: dict[str, Any]) -> None:
    text = found["failures"]["wrong_signature"]

    assert text.startswith("cannot use the plugin 'wrong_signature': ")
    assert "register_backends" in text
    assert "backend_list" in text


def test_only_broken_plugins_are_reported(found: dict[str, Any]) -> None:
    assert set(found["failures"]) == {"raising", "gone", "wrong_signature", "unknown_hook", "failing"}


@pytest.mark.parametrize("way", ["far", "load_far"])
def test_a_missing_framework_is_an_import_error_with_the_command_that_installs_it(
    found: dict[str, Any], way: str
) -> None:
    assert found[way] == [
        "DependencyError",
        True,
        "cannot load the 'far' backend: 'far_away_framework' is not installed; run `pip install far-away`",
    ]


def test_loading_a_broken_backend_raises_its_failure(found: dict[str, Any]) -> None:
    assert found["load_raising"][0] == "PluginError"
    assert "out of luck" in found["load_raising"][2]


def test_the_error_for_an_unknown_backend_suggests_similar_names(found: dict[str, Any]) -> None:
    assert found["load_unknown"][0] == "NotRegisteredError"
    assert "cannot find 'toi' in 'backends': it is not registered; did you mean 'toy'" in found["load_unknown"][2]


def test_the_error_for_an_unknown_name_lists_broken_plugins(found: dict[str, Any]) -> None:
    kind, _, text = found["unknown"]

    assert kind == "AttributeError"
    assert text.startswith(
        "cannot find 'Nonsense' in syft_core: neither the core nor an installed plugin has it; "
        "`syft-core plugins` lists the backends\n"
    )
    assert "\n  cannot use the plugin 'raising': " in text


# --- syft-core plugins


def test_the_listing_has_one_row_per_plugin_with_origin_state_and_what_it_provides(
    listing: subprocess.CompletedProcess[str],
) -> None:
    rows = [re.split(r" {2,}", line) for line in listing.stdout.splitlines()]

    assert rows[0] == ["name", "distribution", "state", "provides"]
    assert [row for row in rows if row[0] not in ("name", "torch", "numpy", "mpc", "ray", "sums", "worker")] == [
        ["acme", "acme-backends 1.0", "not installed", "FarHook", "(pip install far-away)"],
        ["failing", "failing 1.0", "broken"],
        ["gone", "gone 1.0", "broken"],
        ["raising", "raising 1.0", "broken"],
        ["toy", "syft-toy 1.0", "ready", "ToyHook"],
        ["unknown_hook", "unknown-hook 1.0", "broken"],
        ["wrong_signature", "wrong-signature 1.0", "broken"],
    ]


def test_the_listing_puts_what_is_wrong_on_stderr_and_fails(listing: subprocess.CompletedProcess[str]) -> None:
    assert listing.returncode == 1
    for name in ("failing", "gone", "raising", "unknown_hook", "wrong_signature"):
        assert f"cannot use the plugin {name!r}: " in listing.stderr
    assert "Traceback" not in listing.stderr


def test_the_listing_succeeds_when_nothing_is_broken(tmp_path: Path) -> None:
    install(tmp_path, "syft-toy", {"toy": "syft_toy.plugin"})

    done = run(tmp_path, LIST)

    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^toy +syft-toy 1\.0 +ready +ToyHook$", done.stdout, re.MULTILINE)


def test_a_plugin_that_exits_on_import_does_not_take_the_others_down(tmp_path: Path) -> None:
    install(tmp_path, "syft-toy", {"toy": "syft_toy.plugin"})
    install(tmp_path, "leaving", {"leaving": "leaving_plugin"}, leaving_plugin="raise SystemExit('goodbye')")

    done = run(tmp_path, LIST)

    assert done.returncode == 1
    assert "cannot use the plugin 'leaving': it cannot be imported (SystemExit: goodbye)" in done.stderr
    assert re.search(r"^toy +syft-toy 1\.0 +ready +ToyHook$", done.stdout, re.MULTILINE)
