"""Programs for PySyft 0.2 on fixed precision and shares: each call has its result, or a row in the migration guide."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import SyftError  # noqa: E402
from syft_mpc.errors import PrecisionError, ProtocolError  # noqa: E402

from .settings import Setting  # noqa: E402

REAL, WHOLE = [1.5, -2.0, 3.0], [3, -4, 7]
TABLE = [[1.0, 5.0, 2.0], [7.0, 7.0, 3.0]]
GUIDE = Path(__file__).parents[2] / "docs" / "migration.md"


class Program:
    """What a program for PySyft 0.2 has at its start."""

    def __init__(self, torch_hook: Any) -> None:
        self.setting = Setting(torch_hook, 2)
        self.bob, self.alice = self.setting.workers
        self.carol = self.setting.carol
        self.wire = sy.VirtualWorker(torch_hook, id="wire", serialize=True)
        self.x, self.i = torch.tensor(REAL), torch.tensor(WHOLE)
        self.workers: dict[str, Any] = {"crypto_provider": self.carol}
        self.f = self.x.fix_prec(precision_fractional=5)
        self.s = self.f.share(self.bob, self.alice, **self.workers)
        self.n = self.i.share(self.bob, self.alice, **self.workers)
        self.t = torch.tensor(TABLE).fix_prec().share(self.bob, self.alice, **self.workers)

    def share(self, x: Any, **options: Any) -> Any:
        return x.share(self.bob, self.alice, **self.workers, **options)

    def encrypt(self, x: Any, **options: Any) -> Any:
        return x.encrypt(workers=[self.bob, self.alice], **self.workers, **options)


@pytest.fixture
def program(torch_hook: Any) -> Program:
    return Program(torch_hook)


def read(result: Any) -> Any:
    """Return a result as plain numbers."""
    if isinstance(result, tuple | list):
        return [read(part) for part in result]
    if not isinstance(result, torch.Tensor):
        return result
    chain = repr(result)
    result = result.copy().get() if "Sharing" in chain or "PointerTensor" in chain else result
    return (result.float_prec() if "FixedPrecision" in repr(result) else result).tolist()


CALLS: dict[str, tuple[Callable[[Program], Any], Any]] = {
    # encoding
    "fix_prec(dtype='int')": (lambda p: p.x.fix_prec(dtype="int"), REAL),
    "fix_prec(dtype='long')": (lambda p: p.x.fix_prec(dtype="long"), REAL),
    "fix_prec(10, 3, 'int')": (lambda p: p.x.fix_prec(10, 3, "int"), REAL),
    "fix_prec(field=2**64)": (lambda p: p.x.fix_prec(field=2**64), REAL),
    "fix_prec(field=2**32)": (lambda p: p.share(p.x.fix_prec(field=2**32)), REAL),
    "fix_prec(no_wrap=True)": (lambda p: p.x.fix_prec(no_wrap=True).wrap(), REAL),
    "fix_prec_": (lambda p: p.x.fix_prec_() is p.x and "FixedPrecision" in repr(p.x), True),
    "float_prec_": (lambda p: p.x.fix_prec_().float_prec_() is p.x and p.x.tolist(), REAL),
    "fix_precision_": (lambda p: p.x.fix_precision_(), REAL),
    "float_precision_": (lambda p: p.x.fix_precision_().float_precision_(), REAL),
    "FixedPrecisionTensor(field=2**64).on(x)": (lambda p: sy.FixedPrecisionTensor(field=2**64).on(p.x), REAL),
    "fix_prec of a model": (
        lambda p: bool(torch.nn.Linear(2, 1).fix_prec(dtype="long").float_prec().weight.is_leaf),
        True,
    ),
    "float_prec below a PrivateTensor": (
        lambda p: p.x.fix_prec().private_tensor(["me"]).float_prec().child.child.tolist(),
        REAL,
    ),
    "float_prec below a LoggingTensor": (
        lambda p: sy.LoggingTensor().on(p.x.fix_prec()).float_prec().child.child.tolist(),
        REAL,
    ),
    "fix_prec of a PrivateTensor": (
        lambda p: p.x.private_tensor(["me"]).fix_prec().float_prec().child.child.tolist(),
        REAL,
    ),
    # sharing
    "share(dtype='int')": (lambda p: (p.share(p.i, dtype="int").dtype == torch.int32, read(p.n)), [True, WHOLE]),
    "share(dtype='long')": (lambda p: p.share(p.i.int(), dtype="long"), WHOLE),
    "share(field=2**64)": (lambda p: p.share(p.i, field=2**64), WHOLE),
    "share(protocol='snn')": (lambda p: p.share(p.i, protocol="snn") > 0, [1, 0, 1]),
    "fix_prec(dtype='int').share(dtype='int')": (lambda p: p.share(p.x.fix_prec(dtype="int"), dtype="int"), REAL),
    "share(requires_grad=True)": (lambda p: p.share(p.f, requires_grad=True).requires_grad, True),
    "share_": (lambda p: p.i.share_(p.bob, p.alice, **p.workers) is p.i and read(p.i), WHOLE),
    "encrypt(protocol='mpc')": (lambda p: p.encrypt(p.x, protocol="mpc").decrypt(), REAL),
    "encrypt(protocol='snn', dtype='long')": (lambda p: p.encrypt(p.x, protocol="snn", dtype="long").decrypt(), REAL),
    "encrypt(inplace=True)": (lambda p: p.encrypt(p.x, inplace=True) is p.x and p.x.decrypt().tolist(), REAL),
    "decrypt(protocol='mpc')": (lambda p: p.encrypt(p.x).decrypt(protocol="mpc"), REAL),
    "get": (lambda p: p.n.copy().get(), WHOLE),
    "virtual_get": (lambda p: p.n.virtual_get(), WHOLE),
    "refresh": (lambda p: p.s.refresh(), REAL),
    "zero": (lambda p: p.n.child.zero().get(), [0, 0, 0]),
    "reconstruct": (lambda p: [x.tolist() for x in p.n.reconstruct().get()], [WHOLE, WHOLE]),
    "locations": (lambda p: [worker.id for worker in p.n.child.locations] == ["bob", "alice"], True),
    "shape, dim and numel": (lambda p: [list(p.t.shape), p.t.dim(), p.t.numel()], [[2, 3], 2, 6]),
    # arithmetic
    "+ - *": (lambda p: p.s + 1 - p.s * 2, [-0.5, 3.0, -2.0]),
    "* with a public tensor": (lambda p: p.s * torch.tensor([2.0, 2.0, 2.0]), [3.0, -4.0, 6.0]),
    "/ 2": (lambda p: p.s / 2, [0.75, -1.0, 1.5]),
    "/ 0.5": (lambda p: p.s / 0.5, [3.0, -4.0, 6.0]),
    "% 2": (lambda p: p.n % 2, [1, 0, 1]),
    "pow": (lambda p: p.s**2, [2.25, 4.0, 9.0]),
    "matmul": (lambda p: p.t.t().matmul(p.t)[0], [50.0, 54.0, 23.0]),
    "public @ shared": (
        lambda p: torch.tensor([[1.0, 0.0], [1.0, 1.0]]).fix_prec() @ p.t,
        [[1.0, 5.0, 2.0], [8.0, 12.0, 5.0]],
    ),
    "mean and sum": (lambda p: [read(p.t.mean(dim=1)), read(p.t.sum())], [[2.667, 5.667], 25.0]),
    "var": (lambda p: p.t.var(), 6.567),
    "chunk, split, unbind, stack, cat, roll": (
        lambda p: [
            p.n.chunk(3)[0],
            p.n.split(2)[1],
            p.n.unbind()[2],
            torch.stack([p.n, p.n])[1],
            torch.cat([p.n, p.n])[3:],
            p.n.roll(1),
        ],
        [[3], [7], 7, WHOLE, WHOLE, [7, 3, -4]],
    ),
    # comparison
    "comparisons": (
        lambda p: [p.n > 3, p.n >= 3, p.n < 3, p.n <= 3, p.n == 3],
        [[0, 0, 1], [1, 0, 1], [0, 1, 0], [1, 1, 0], [1, 0, 0]],
    ),
    "relu and sign": (lambda p: [torch.relu(p.s), p.s.sign()], [[1.5, 0.0, 3.0], [1.0, -1.0, 1.0]]),
    "max and min": (lambda p: [p.t.max(), p.t.min()], [7.0, 1.0]),
    "max(dim)": (lambda p: p.t.max(dim=1).values, [5.0, 7.0]),
    "argmax and argmin": (lambda p: [p.t.argmax(dim=1), p.t.argmin(dim=1)], [[1.0, 0.0], [0.0, 2.0]]),
    "argmax(one_hot=True)": (lambda p: p.t.argmax(dim=1, one_hot=True), [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "argmax(one_hot=False)": (lambda p: p.t.argmax(dim=1, one_hot=False), [1.0, 0.0]),
    "argmin(one_hot=True)": (lambda p: p.n.argmin(one_hot=True), [0, 1, 0]),
    # approximations, with the options by position or by name
    "exp(8)": (lambda p: p.s.exp(8), [4.482, 0.135, 20.086]),
    "exp(iterations=8)": (lambda p: p.s.exp(iterations=8), [4.482, 0.135, 20.086]),
    "log(2, 8)": (lambda p: p.s.abs().log(2, 8), [0.405, 0.693, 1.099]),
    "log(iterations=2, exp_iterations=8)": (
        lambda p: p.s.abs().log(iterations=2, exp_iterations=8),
        [0.405, 0.693, 1.099],
    ),
    "sigmoid('exp')": (lambda p: p.s.sigmoid("exp"), [0.818, 0.119, 0.953]),
    "sigmoid('chebyshev')": (lambda p: p.s.sigmoid("chebyshev"), [0.818, 0.119, 0.953]),
    "sigmoid(method='maclaurin')": (lambda p: p.s.sigmoid(method="maclaurin"), [0.772, 0.153, 0.96]),
    "tanh('chebyshev')": (lambda p: p.s.tanh("chebyshev"), [0.905, -0.964, 0.995]),
    "tanh('sigmoid')": (lambda p: p.s.tanh("sigmoid"), [0.905, -0.964, 0.995]),
    "unshared tanh('chebyshev')": (lambda p: p.f.tanh("chebyshev"), [0.905, -0.964, 0.995]),
    "reciprocal('NR', 10)": (lambda p: p.s.reciprocal("NR", 10), [0.667, -0.5, 0.333]),
    "reciprocal('division')": (lambda p: p.s.reciprocal("division"), [0.667, -0.5, 0.333]),
    "reciprocal(method='log')": (lambda p: p.s.reciprocal(method="log"), [0.667, -0.5, 0.333]),
    "inverse(8)": (lambda p: p.share((torch.eye(2) * 2).fix_prec()).inverse(8), [[0.5, 0.0], [0.0, 0.5]]),
    "dropout": (lambda p: set(np.abs(read(torch.nn.functional.dropout(p.s, p=0.5)))) <= {0.0, 3.0, 4.0, 6.0}, True),
    # sending
    "fix_prec().send": (lambda p: p.f.send(p.bob), REAL),
    "fix_prec().send by wire": (lambda p: p.f.send(p.wire), REAL),
    "fix_prec().send, compute": (lambda p: p.f.send(p.wire) + 1, [2.5, -1.0, 4.0]),
    "fix_prec(dtype='int').send by wire": (lambda p: p.x.fix_prec(dtype="int").send(p.wire), REAL),
    "send(...).fix_prec().share": (lambda p: p.share(p.x.send(p.bob).fix_prec()), REAL),
    "model.fix_prec().send": (
        lambda p: torch.nn.Linear(2, 1).fix_prec().send(p.wire).get().float_prec().weight.shape[0],
        1,
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_pysyft_0_2_has_its_result(program: Program, call: str) -> None:
    compute, expected = CALLS[call]
    found = read(compute(program))
    flat, wanted = (np.concatenate([np.ravel(part) for part in x]) if _is_ragged(x) else x for x in (found, expected))
    np.testing.assert_allclose(np.asarray(flat, float), np.asarray(wanted, float), atol=4e-3)


def _is_ragged(x: Any) -> bool:
    return isinstance(x, list) and len({np.shape(part) for part in x}) > 1


REFUSED: dict[str, tuple[Callable[[Program], Any], str]] = {
    "fix_prec(field=67)": (lambda p: p.x.fix_prec(field=67), "use 'long' (64 bits) or 'int' (32 bits)"),
    "fix_prec(dtype='custom')": (lambda p: p.x.fix_prec(dtype="custom"), "use 'long' (64 bits) or 'int' (32 bits)"),
    "share(dtype='custom')": (lambda p: p.share(p.i, dtype="custom", field=67), "use 'long' (64 bits)"),
    "share with another ring": (lambda p: p.share(p.f, dtype="int"), "`x.fix_precision(field='int')`"),
    "share numbers that do not fit": (lambda p: p.share(p.i * 2**40, dtype="int"), "scale the data"),
    "share(protocol='fss')": (lambda p: p.share(p.i, protocol="fss"), "use 'fast', the default"),
    "encrypt(protocol='paillier')": (lambda p: p.encrypt(p.x, protocol="paillier"), "use 'fast', the default"),
    "shared.send": (lambda p: p.s.send(p.bob), "`x.get()`"),
    "shared.move": (lambda p: p.s.move(p.bob), "`x.get()`"),
    "model.share().send": (lambda p: p.share(torch.nn.Linear(2, 1).fix_prec()).send(p.bob), "`x.get()`"),
    "pointer.float_prec": (lambda p: p.f.send(p.bob).float_prec(), "`x.get().float_precision()`"),
    "tanh with a gradient and a method": (lambda p: p.s.requires_grad_().tanh("chebyshev"), "leave out `method`"),
    "qr": (lambda p: torch.linalg.qr(p.t), "`torch.linalg.solve`"),
    "serialize(shared)": (lambda p: sy.serde.serialize(p.s), "`x.get()`"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_a_call_of_pysyft_0_2_is_refused_with_the_way_out(program: Program, call: str) -> None:
    compute, advice = REFUSED[call]
    with pytest.raises(SyftError, match=re.escape(advice)):
        compute(program)
    assert read(program.s) == pytest.approx(REAL, abs=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "crypto_store.provide_primitives",
        "inv_sym",
        "qr",
        "max(dim)",
        "return_idx",
        "shared.send(bob)",
        "kappa",
        "maxval",
        'storage="crt"',
        "signum",
        "modulus",
        "truncate",
        "spdz_compute",
        "init_shares",
        "min_value",
    ],
)
def test_what_is_gone_has_a_row_in_the_guide(name: str) -> None:
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("|")]
    assert any(name in row.split("|")[1] for row in rows)


def test_a_received_layer_is_validated(torch_hook: Any) -> None:
    """A precision whose scale does not fit, or a field of another name, is refused before anything is computed."""
    encoded = sy.serde.serialize(torch.tensor([1.5]).fix_prec(base=10, precision_fractional=3))
    assert sy.serde.deserialize(encoded).float_prec().tolist() == [1.5]
    for options in ({"precision_fractional": 10**9}, {"base": 10**30}, {"base": True}, {"field": "short"}):
        with pytest.raises((PrecisionError, ProtocolError)):
            torch.tensor([1.5]).fix_prec(**options)
