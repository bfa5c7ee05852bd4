from __future__ import annotations

import pytest

pytest.importorskip("torch")
accounting = pytest.importorskip("dp_accounting")
rdp = pytest.importorskip("dp_accounting.rdp")

from syft_core.features import Later  # noqa: E402  # torch may be missing
from syft_torch import federated as fl  # noqa: E402  # the same
from syft_torch.federated.private_steps.accounting import (  # noqa: E402  # the same
    PrivateStep,
    find_epsilon,
    require_accounting,
    write_epsilon,
)

LEFT_OUT = accounting.NeighboringRelation.REPLACE_SPECIAL


def compute(*steps: tuple[float, float, int], delta: float) -> float:
    accountant = rdp.RdpAccountant(neighboring_relation=LEFT_OUT)
    for rate, multiplier, count in steps:
        event = accounting.PoissonSampledDpEvent(rate, accounting.GaussianDpEvent(multiplier))
        accountant.compose(event, count)
    return float(accountant.get_epsilon(delta))


@pytest.mark.parametrize(("rate", "multiplier", "count"), [(0.01, 1.1, 1000), (16 / 243, 1.1, 300), (0.2, 2.0, 50)])
def test_epsilon_is_that_of_dp_accounting(rate: float, multiplier: float, count: int) -> None:
    assert find_epsilon({PrivateStep(rate, multiplier): count}, 1e-5) == compute((rate, multiplier, count), delta=1e-5)


def test_the_numbers_of_the_guide_are_right() -> None:
    assert find_epsilon({PrivateStep(16 / 243, 1.1): 300}, 1e-5) == pytest.approx(7.2, abs=0.05)
    assert find_epsilon({PrivateStep(16 / 47, 1.1): 60}, 1e-5) == pytest.approx(18.05, abs=0.05)


def test_steps_of_different_kinds_are_composed() -> None:
    found = find_epsilon({PrivateStep(0.01, 1.1): 100, PrivateStep(0.05, 2.0): 40}, 1e-6)

    assert found == pytest.approx(compute((0.01, 1.1, 100), (0.05, 2.0, 40), delta=1e-6))


def test_epsilon_is_rounded_up() -> None:
    assert write_epsilon(7.2201, 1e-5) == "ε 7.23 at δ 1e-05"


def test_without_dp_accounting_nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syft_torch.federated.private_steps.accounting._ACCOUNTANT", Later("no_such_module_anywhere:x"))

    with pytest.raises(fl.FederatedError, match="pip install"):
        require_accounting()
