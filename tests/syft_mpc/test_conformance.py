"""The conformance suite finds defects of kernels, and names the method to fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

np = pytest.importorskip("numpy")

from syft_core.testing.section import Bob, ConformanceError  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.testing import EncryptedSection, Sharer  # noqa: E402
from syft_numpy.attributes import NumpyAttributes  # noqa: E402

from .settings import attach  # noqa: E402


def broken(**methods: Any) -> Any:
    """Return kernels with other methods."""
    return type("BrokenKernels", (NumpyKernels,), methods)()


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in NumpyAttributes.structural.items() if key != name}


MUTATIONS: dict[str, tuple[str, Any, str]] = {
    "big-endian bytes": (
        "kernels",
        broken(from_bytes=lambda _self, buffer, dtype, shape: np.frombuffer(buffer, dtype).byteswap().reshape(shape)),
        "Kernels.from_bytes",
    ),
    "bytes of another type": (
        "kernels",
        broken(to_bytes=lambda _self, x: bytes(x.astype("int32"))),
        "Kernels.to_bytes",
    ),
    "casts that saturate": (
        "kernels",
        broken(cast=lambda _self, x, dtype: np.clip(x, 0, 255).astype(dtype) if dtype == "uint8" else x.astype(dtype)),
        "Kernels.cast",
    ),
    "products of floats": (
        "kernels",
        broken(matmul=lambda _self, x, y: (x.astype(float) @ y.astype(float)).astype(x.dtype)),
        "Kernels.matmul",
    ),
    "convolution without padding": (
        "kernels",
        broken(pad=lambda _self, x, _padding: x),
        "Kernels.pad",
    ),
    "quotients rounded to zero": (
        "kernels",
        broken(floor_divide=lambda _self, x, divisor: np.trunc(x / divisor).astype(x.dtype)),
        "Kernels.floor_divide",
    ),
    "encoding that truncates": (
        "kernels",
        broken(encode=lambda _self, x, scale, dtype: (np.asarray(x, float) * scale).astype(dtype)),
        "Kernels.encode",
    ),
    "no limit": ("kernels", broken(is_within=lambda _self, _x, _limit: True), "Kernels.is_within"),
    "sums in another ring": (
        "kernels",
        broken(sum=lambda _self, x, axis: x.sum(axis) + 1),
        "Kernels.sum",
    ),
    "no indexing": ("structural", without("__getitem__"), "FrameworkAttributes.structural"),
    "no concatenation": ("structural", without("cat"), "FrameworkAttributes.structural"),
    "axes in another order": ("permute", lambda _self, tensor, _axes: tensor, "FrameworkAttributes.permute"),
    "nothing is written": ("overwrite", lambda _self, _target, _value: None, "FrameworkAttributes.overwrite"),
}


class Numpy(EncryptedSection):
    framework = np

    def concatenate(self, tensors: Any) -> Any:
        return np.concatenate(tensors)


def run_checks() -> list[str]:
    """Return what the failed checks say."""
    failures = []
    for name in (name for name in vars(EncryptedSection) if name.startswith("test_")):
        section = Numpy()
        with attach("numpy") as hook:
            workers = [Bob(hook, id=id) for id in ("bob", "alice")]
            carol = VirtualWorker(hook, id="carol")
            group = Sharer(hook, lambda values: section._share(hook, values, workers, carol))  # noqa: B023  # called here
            available = {"hook": hook, "kernels": hook.attributes.kernels, "group": group}
            check = getattr(section, name)
            names = check.__wrapped__.__code__.co_varnames[1 : check.__wrapped__.__code__.co_argcount]
            try:
                check(**{name: available[name] for name in names})
            except ConformanceError as error:
                failures.append(str(error))
    return failures


def test_the_intact_backend_has_no_failures() -> None:
    assert run_checks() == []


@pytest.mark.parametrize("name", MUTATIONS)
@pytest.mark.filterwarnings("ignore")  # broken kernels overflow
def test_a_broken_backend_fails_a_check_that_names_the_method_to_fix(name: str) -> None:
    attribute, value, method = MUTATIONS[name]
    with patch.object(NumpyAttributes, attribute, value):
        failures = run_checks()
    assert any(method in failure.rpartition("; fix ")[2] for failure in failures), failures


def test_every_check_names_methods_that_the_guide_explains() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "backends.md").read_text(encoding="utf-8")
    checks = [check for name, check in vars(EncryptedSection).items() if name.startswith("test_")]
    assert len(checks) > 12
    for check in checks:
        for method in check.fixes:
            assert method.partition(" (")[0].rpartition(".")[2] in guide, method
