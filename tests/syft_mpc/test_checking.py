"""``sy.checking`` names the first operation and element that is out of range, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_mpc.checking import PrecisionWarning  # noqa: E402
from syft_mpc.errors import PrecisionError, ProtocolError  # noqa: E402

from .settings import Setting  # noqa: E402

F = torch.nn.functional
LARGE = np.array([[1.0, 2.0], [3.0, 33_000.0]])


@pytest.fixture(params=[(0, False), (2, False), (3, False), (2, True)], ids=["unshared", "two", "three", "by_wire"])
def setting(request: pytest.FixtureRequest, torch_hook: Any) -> Setting:
    return Setting(torch_hook, *request.param)


def test_a_product_out_of_range_is_reported_in_every_run(setting: Setting) -> None:
    x = setting.put(LARGE)

    for _ in range(10):  # 1.01 · 2^30 is right or wrong at random.
        with (
            sy.checking(),
            pytest.raises(PrecisionError, match=r"'aten.mul.Tensor': element \(1, 1\) of its result") as e,
        ):
            x * x
        assert "smaller than 1.07e+09" in str(e.value)
        assert "33000" not in str(e.value)
    assert (x * x).shape == (2, 2)


def test_products_in_range_are_not_reported(setting: Setting) -> None:
    x = setting.put(LARGE)

    with sy.checking():
        results = [x * (x / 2), (x / 2) @ x, x * 2**30, x + x, x.sum(), x / x, x > 2, x.floor(), x.argmax(1), -x % 7]
    assert setting.read(results[0])[1, 1] == pytest.approx(33_000**2 / 2)


OUT_OF_RANGE: dict[str, Callable[[Any], Any]] = {
    "aten.mm.default": lambda x: x @ x,
    "aten.addmm.default": lambda x: torch.addmm(x, x, x),
    "aten.pow.Tensor_Scalar": lambda x: x**3,
    "aten.mul_.Tensor": lambda x: x.clone().mul_(x),
    "aten.prod.default": lambda x: (x * 100).prod(),
    "aten.sum.default": lambda x: (x[1, 1:] * 2**31).repeat(3).sum(),
    "aten.add.Tensor": lambda x: x * 2**31 + x * 2**31,
    "aten.cumsum.default": lambda x: (x[1, 1:] * 2**31).repeat(3).cumsum(0),
    "aten.convolution.default": lambda x: F.conv2d(x[None, None], x[None, None]),
    "aten.sub.Tensor": lambda x: -x * 2**31 - x * 2**31,
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_the_operation_that_is_out_of_range_is_named(setting: Setting, name: str) -> None:
    x = setting.put(LARGE)

    with sy.checking(), pytest.raises(PrecisionError, match=f"cannot trust '{name}': element"):
        OUT_OF_RANGE[name](x)


def test_a_dividend_out_of_range_is_reported(torch_hook: Any) -> None:
    x = Setting(torch_hook).put(LARGE)

    with sy.checking(), pytest.raises(PrecisionError, match=r"cannot trust 'aten.div.Tensor': element \(1, 1\)"):
        (x * 40_000) / (x * 0 + 1)


def test_a_gradient_out_of_range_is_reported(setting: Setting) -> None:
    x = setting.put(LARGE).requires_grad_()
    with sy.checking():
        loss = (x * 10_000 * 2).sum()
        y = ((x / 1000) ** 2).sum()
        loss.backward()
        with pytest.raises(PrecisionError, match="cannot trust 'aten.mul.Tensor': element"):
            (y * 1e9 / 1e9).backward(torch.tensor(1e9))


def test_numbers_without_a_result_are_reported(torch_hook: Any) -> None:
    x = Setting(torch_hook).put([1.0, -1.0, 13.0])

    for compute in (torch.log, torch.sqrt, torch.exp, lambda x: 3 / (x + 1)):
        with sy.checking(), pytest.raises(PrecisionError, match="out of range, or not the one that floats give"):
            compute(x)


def test_shared_integers_that_wrap_around_are_reported(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    for dtype, factor in ((torch.int64, 2**40), (torch.int32, 2**20)):
        x = setting.share(torch.tensor([3, 4], dtype=dtype)) * factor
        with sy.checking(), pytest.raises(PrecisionError, match="cannot trust 'aten.mul.Tensor': element"):
            x * x


def test_numpy_programs_are_checked(any_hook: Any) -> None:
    setting = Setting(any_hook)
    x = setting.put(LARGE)

    with sy.checking():
        assert setting.read(x + x)[1, 1] == 66_000
        with pytest.raises(PrecisionError, match=r"element \(1, 1\) of its result is out of range"):
            x @ x


@pytest.mark.filterwarnings("ignore::syft_mpc.checking.PrecisionWarning")
def test_a_training_step_is_checked_without_false_alarms(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3),
        nn.LayerNorm(3),
    ).encrypt(workers=setting.workers, crypto_provider=setting.carol, base=2, precision_fractional=16)  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = setting.put(np.random.default_rng(0).normal(size=(4, 1, 4, 4)).astype("float32"))

    with sy.checking():
        for _ in range(2):
            optimizer.zero_grad()
            F.cross_entropy(model(x), torch.tensor([0, 1, 2, 0])).backward()
            optimizer.step()


def test_results_that_are_mostly_rounding_errors_cause_one_warning(setting: Setting) -> None:
    x = setting.put([1e-3, -2e-3])

    def compute() -> None:
        with sy.checking():
            for _ in range(3):
                x * x

    with pytest.warns(PrecisionWarning, match="'aten.mul.Tensor' are all smaller than 8 units") as caught:
        compute()
    assert len(caught) == 1


def test_authenticated_shares_are_not_checked(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    x = torch.tensor([1.5]).fix_precision(base=2, precision_fractional=8)
    x = x.share(*setting.workers, crypto_provider=setting.carol, protocol="authenticated")

    with sy.checking(), pytest.raises(ProtocolError, match="cannot check results of authenticated shares"):
        x + x


# --- optimizers


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adagrad", "NAdam"])
def test_an_optimizer_that_divides_by_squared_gradients_warns_once(torch_hook: Any, name: str) -> None:
    parameter = Setting(torch_hook).put([1.0, 2.0]).requires_grad_()
    optimizer = getattr(torch.optim, name)([parameter], lr=0.01)

    def train() -> None:
        for _ in range(2):
            optimizer.zero_grad()
            parameter.square().sum().backward()
            optimizer.step()

    with pytest.warns(PrecisionWarning, match=f"{name} divides by averages of squared gradients") as caught:
        train()
    assert len(caught) == 1


def test_other_optimizers_and_plain_parameters_do_not_warn(torch_hook: Any) -> None:
    for parameter, make in (
        (Setting(torch_hook).put([1.0]).requires_grad_(), torch.optim.SGD),
        (torch.tensor([1.0], requires_grad=True), torch.optim.Adam),
    ):
        parameter.square().sum().backward()
        make([parameter], lr=0.01).step()
