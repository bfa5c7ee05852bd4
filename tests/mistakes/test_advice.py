"""What refusals suggest instead of an operation: every suggested line runs, on private data too if it may."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from syft_core.exceptions import OperationNotAllowedError, ValueRefusedError  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_numpy import facts as numpy_facts  # noqa: E402
from syft_numpy.hook import NumpyHook  # noqa: E402
from syft_torch import facts as torch_facts  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402

NEEDS_SIZES = pytest.mark.skipif(
    torch.__version__.startswith("2.4."), reason="this torch ignores the protocol for sizes"
)

VALUES = [[4.0, 1.0, 2.0, 0.5], [1.0, 5.0, 0.0, 1.0], [2.0, 0.0, 6.0, 1.5], [0.5, 1.0, 1.5, 7.0]]


@pytest.fixture(scope="module", params=[False, True], ids=["in_process", "by_wire"])
def bob(request: pytest.FixtureRequest) -> Iterator[Any]:
    with TorchHook(torch) as hook, NumpyHook(numpy) as other:
        made = VirtualWorker(hook, id="bob", serialize=request.param)
        made.framework_of_arrays = other
        yield made


def point_to(bob: Any, framework: str, is_private: bool, whole: bool = False) -> Any:
    values = bob.framework_of_arrays.array(VALUES) if framework == "numpy" else torch.tensor(VALUES)
    values = values.astype(int) if whole and framework == "numpy" else values.long() if whole else values
    if not is_private:
        return values.send(bob)
    data = values.private_tensor(["ann"]).tag("#private")
    bob.load_data([data])
    return bob.search("#private")[0]


def run(line: str, p: Any) -> Any:
    given = {"p": p, "torch": torch, "numpy": numpy, "model": torch.nn.Linear(1, 1)}
    if "lengths" in line:  # of padded sequences
        p = given["p"] = p.unsqueeze(-1)
        given["lengths"] = torch.ones_like(p[:, 0, 0]).long()
        given["rnn"] = torch.nn.GRU(1, 2, batch_first=True).send(p.location)
    if "embedding(" in line:
        given["weight"] = p
    return eval(line, {**given, "target": p, "variance": p})


@pytest.fixture(autouse=True)
def _clear(bob: Any) -> Iterator[None]:
    yield
    bob.clear_objects()


SUGGESTED = [("torch", line) for line in sorted(set(torch_facts.INSTEAD.values()))]
SUGGESTED += [("numpy", line) for line in sorted(set(numpy_facts.INSTEAD.values()))]


@pytest.mark.parametrize(("framework", "line"), SUGGESTED)
def test_a_suggested_line_runs_on_private_data(bob: Any, framework: str, line: str) -> None:
    p = point_to(bob, framework, is_private=True, whole="gcd" in line)

    run(line if not line.startswith("p.") or "_()" not in line else line.replace("p.", "p.clone().", 1), p)


@pytest.mark.parametrize(
    ("framework", "line", "is_private"),
    [
        ("torch", "p[p > 1]", True),
        ("torch", "torch.nonzero(p)", True),
        ("torch", "torch.masked_select(p, p > 1)", True),
        ("torch", "torch.unique(p)", True),
        ("torch", "torch.bincount(p.long()[0])", True),
        ("torch", "torch.cov(p)", True),
        ("torch", "torch.multinomial(p, 1)", True),
        ("torch", "torch.linalg.lstsq(p, p)", True),
        ("torch", "torch.histogram(p, 3)", True),
        ("torch", "torch.gradient(p)", True),
        ("torch", "torch.nn.utils.rnn.pack_padded_sequence(p[..., None], (p[:, 0] * 0 + 1).long())", True),
        ("torch", "torch.nn.functional.embedding_bag((p * 0).long(), p)", True),
        ("torch", "torch.nn.functional.gaussian_nll_loss(p, p, p)", True),
        ("torch", "torch.linalg.eig(p)", False),
        ("torch", "torch.lcm(p.long(), p.long())", False),
        ("torch", "torch.nn.functional.fractional_max_pool2d(p[None, None], 2, output_size=1)", False),
        ("torch", "torch.poisson(p)", True),
        pytest.param("torch", "torch.zeros(p)", False, marks=NEEDS_SIZES),
        pytest.param("torch", "torch.ones(p)", True, marks=NEEDS_SIZES),
        ("numpy", "p[p > 1]", True),
        ("numpy", "numpy.nonzero(p)", True),
        ("numpy", "numpy.unique(p)", True),
        ("numpy", "numpy.linalg.eig(p)", True),
        ("numpy", "numpy.piecewise(p, [p > 1], [0, 1])", False),
        ("numpy", "p.flat", False),
    ],
)
def test_a_refusal_suggests_a_line_that_runs(bob: Any, framework: str, line: str, is_private: bool) -> None:
    p = point_to(bob, framework, is_private)

    with pytest.raises((OperationNotAllowedError, ValueRefusedError)) as caught:
        run(line, p)

    advised = re.findall(r"`([^`]*)`", str(caught.value))
    assert advised
    for advice in advised:
        whole = "gcd" in advice
        run(advice.removeprefix("p = "), point_to(bob, framework, is_private, whole) if whole else p.copy())


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("bincount", lambda p: torch.bincount(p.long().flatten(), minlength=10)),
        ("corrcoef", torch.corrcoef),
        ("cov", torch.cov),
        ("histogram", lambda p: torch.histogram(p, 10, range=(0.0, 1.0)).hist),
        ("linspace", lambda _p: torch.linspace(0, 1, 10)),
        ("gaussian_nll_loss", lambda p: torch.nn.functional.gaussian_nll_loss(p, p, p)),
        ("embedding_bag", lambda p: torch.nn.functional.embedding_bag(p.long(), p)),
        ("masked_select", lambda p: torch.masked_select(p, p > 0).mean()),
    ],
)
def test_a_suggested_line_computes_the_same(operation: str, expected: Any) -> None:
    p = torch.tensor([[0.1, 1.0, 0.3], [1.0, 0.5, 0.25], [1.25, 2.0, 0.75]])
    p = p.flatten() if operation == "bincount" else p

    found = run(torch_facts.INSTEAD[operation], p)

    torch.testing.assert_close(found.to(torch.float32), expected(p).to(torch.float32))
