"""The plugin of the numpy backend; importing it does not import numpy."""

from __future__ import annotations

from syft_core.plugins.backend import Backend
from syft_core.plugins.hookspecs import hookimpl
from syft_core.registry import Registry


@hookimpl
def register_backends(backends: Registry[str, Backend]) -> None:
    """Register the numpy backend."""
    backends.register("numpy", BACKEND)


BACKEND = Backend(
    name="numpy",
    framework="numpy",
    hook="syft_numpy.hook:NumpyHook",
    install="pip install numpy",
    exports={"NumpyHook": "syft_numpy.hook:NumpyHook"},
    extends={"mpc": "syft_mpc.numpy.rules"},
    suite="syft_numpy.testing:NumpyConformance",
)
