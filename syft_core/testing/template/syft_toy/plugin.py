"""The plugin through which syft-core finds this backend; importing it does not import toy."""

from __future__ import annotations

from syft_core.plugins.backend import Backend
from syft_core.plugins.hookspecs import hookimpl
from syft_core.registry import Registry

BACKEND = Backend(
    name="toy",
    framework="toy",
    hook="syft_toy.hook:ToyHook",
    install="pip install toy",
    exports={"ToyHook": "syft_toy.hook:ToyHook"},
    suite="syft_toy.testing:ToyConformance",
)


@hookimpl
def register_backends(backends: Registry[str, Backend]) -> None:
    """Register the toy backend."""
    backends.register(BACKEND.name, BACKEND)
