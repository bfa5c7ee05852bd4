"""All randomness of protocols comes from the operating system and AES, never from the frameworks' generators."""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import syft_mpc as crypto  # noqa: E402
from syft_mpc import prg  # noqa: E402
from syft_mpc.additive_shared import generate_shares  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.securenn import Digits, NonZeroDigits, P, Residues  # noqa: E402

from .groups import (  # noqa: E402
    Group,
    make_kernels,
)

CORE = Path(crypto.__file__).parent
ROOT = CORE.parents[1]
GENERATORS = set(
    "rand randn randint random random_ default_rng normal normal_ uniform uniform_ bernoulli bernoulli_ randperm "
    "permutation shuffle manual_seed seed choice".split()
)


def seed_everything() -> None:
    random.seed(0)
    np.random.seed(0)
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("square", {}),
        ("truncate", {"divisor": 10}),
        ("relu", {}),
        ("snn_relu", {}),
        ("auth_input", {"owner": 0}),
        ("zero", {}),
    ],
)
def test_the_seeds_of_frameworks_do_not_determine_shares_and_masks(framework: str, name: str, options: Any) -> None:
    def run() -> set[bytes]:
        sent: list[Any] = []
        seed_everything()
        group = Group(2, make_kernels(framework), watch=lambda _s, _r, payload: sent.extend(arrays_in(payload)))
        operand = group.kernels.zeros((64,), "int64")
        results = group.run(name, [operand, operand], **options)
        return {np.asarray(array).tobytes() for array in [*sent, *results] if array.shape[-1] == 64}

    first, second = run(), run()

    assert first
    assert not first & second


def arrays_in(payload: Any) -> list[Any]:
    return [x for part in payload for x in (arrays_in(part) if isinstance(part, tuple) else [part])]


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.torch
def test_the_seeds_of_frameworks_do_not_determine_the_shares_of_a_tensor(framework: str) -> None:
    kernels = make_kernels(framework)

    def share() -> set[bytes]:
        seed_everything()
        shares = generate_shares(kernels.zeros((64,), "int64"), 3, kernels)
        return {bytes(kernels.to_bytes(array)) for array in [*shares, kernels.random_mask((256,), 0.5)]}

    assert not share() & share()


def test_no_module_of_the_crypto_package_uses_another_generator() -> None:
    files = sorted(CORE.glob("*.py"))  # A rule of torch draws the mask of dropout, which is no secret of the protocols.
    found = []
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [node.attr]
                if isinstance(node, ast.Attribute)
                else [part for alias in node.names for part in alias.name.split(".")]
                if isinstance(node, ast.Import | ast.ImportFrom)
                else []
            )
            found += [f"{path.name}:{node.lineno}: {name}" for name in names if name in GENERATORS]

    assert len(files) > 10
    assert found == []


def test_no_two_seeds_are_equal() -> None:
    assert len({prg.new_seed() for _ in range(1000)}) == 1000


def test_digits_and_residues_are_uniform() -> None:
    kernels, stream, size = NumpyKernels(), prg.Stream(bytes(16)), 200_000

    for spec, values in ((Digits((size,), "uint8"), range(P)), (NonZeroDigits((size,), "uint8"), range(1, P))):
        counts = np.bincount(spec.expand(kernels, stream), minlength=256)
        assert counts.sum() == counts[list(values)].sum() == size
        assert abs(counts[list(values)] - size / len(values)).max() < 600  # 11 standard deviations
    for dtype in ("int64", "int32"):
        residues = Residues((size,), dtype).expand(kernels, stream)
        assert not (residues == -1).any()
        assert abs(np.unpackbits(residues.view("uint8")).mean() - 0.5) < 0.01


def test_the_same_stream_gives_the_same_digits_at_both_ends() -> None:
    spec = Digits((3, 1000), "uint8")

    assert (
        spec.expand(NumpyKernels(), prg.Stream(bytes(16))) == spec.expand(NumpyKernels(), prg.Stream(bytes(16)))
    ).all()
