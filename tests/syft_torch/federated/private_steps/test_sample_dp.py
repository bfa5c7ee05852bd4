from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from syft_torch import federated as fl  # torch may be missing
from syft_torch.federated.loops import Settings  # the same

PRIVACY = fl.SampleDP(clip=1.0, multiplier=1.1, delta=1e-5)


@pytest.mark.parametrize("name", ["clip", "multiplier", "delta", "rate"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "1", True, 1e9])
def test_a_wrong_number_is_refused(name: str, value: Any) -> None:
    numbers = {"clip": 1.0, "multiplier": 1.1, "delta": 1e-5, "rate": 0.1, name: value}

    with pytest.raises(fl.FederatedError, match=name):
        fl.SampleDP(**numbers)


@pytest.mark.parametrize("name", ["clip", "multiplier", "delta"])
def test_only_the_rate_may_be_left_to_the_worker(name: str) -> None:
    with pytest.raises(fl.FederatedError, match=f"{name} is None"):
        fl.SampleDP(**{"clip": 1.0, "multiplier": 1.1, "delta": 1e-5, name: None})  # type: ignore[arg-type]


def test_settings_are_sent_with_it() -> None:
    settings = Settings(privacy=PRIVACY, groups=(({"lr": 0.1}, (0,)),))

    sent = settings.write()

    assert sent["privacy"] == (1.0, 1.1, 1e-5, None)
    assert Settings.read(sent) == settings


@pytest.mark.parametrize("received", [(1.0, 1.1), [1.0, 1.1, 1e-5, None], {"clip": 1.0}, 1.0, (1.0, 0.0, 1e-5, None)])
def test_other_values_are_not_read(received: Any) -> None:
    with pytest.raises(fl.FederatedError):
        Settings.read({"privacy": received})


def test_each_worker_has_a_rate_and_steps_of_its_own() -> None:
    many, few = PRIVACY.plan(243, 1, 16), PRIVACY.plan(47, 1, 16)

    assert (many.rate, many.steps, many.expected) == (16 / 243, 15, 16)
    assert (few.rate, few.steps, few.expected) == (16 / 47, 3, 16)


def test_a_given_rate_holds_for_all_workers() -> None:
    found = fl.SampleDP(1.0, 1.1, 1e-5, rate=0.1).plan(200, 3, 8)

    assert (found.rate, found.steps, found.expected, found.most) == (0.1, 30, 20, 8)


def test_a_batch_of_all_samples_has_the_rate_one() -> None:
    found = PRIVACY.plan(20, 2, None)

    assert (found.rate, found.steps, found.most) == (1.0, 2, 20)
