from __future__ import annotations

from syft_core.plugins import hookspecs


def test_every_hook_is_documented_and_tested_here() -> None:
    specs = {name: spec.__doc__ for name, spec in vars(hookspecs).items() if hasattr(spec, "syft_core_spec")}

    assert set(specs) == {
        "register_backends",
        "register_codecs",
        "register_commands",
        "register_errors",
        "register_features",
        "register_kinds",
        "register_messages",
        "register_operations",
        "register_rules",
        "register_tensor_types",
    }
    assert all(specs.values())
