from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

pytest.importorskip("torch")

from syft_torch import federated as fl  # torch may be missing


@pytest.mark.parametrize("name", [field.name for field in fields(fl.Options)])
def test_each_option_is_checked_when_it_is_given(name: str) -> None:
    wrong: Any = {"a": "dict"}
    if name == "scheduler":  # It is called with the optimizer of the trainer.
        assert fl.Options(scheduler=wrong).scheduler is wrong
        return

    with pytest.raises(fl.FederatedError, match=name):
        fl.Options(**{name: wrong})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"clip": 0}, "clip is 0; pass a positive number"),
        ({"clip_grad": float("nan")}, "clip_grad is nan; pass a positive number"),
        ({"max_norm": float("inf")}, "max_norm is inf; pass a positive number"),
        ({"min_results": 0}, "min_results is 0; pass a positive integer, or None"),
        ({"clients_per_round": True}, "clients_per_round is True; pass a positive integer, or None for all"),
        ({"seed": 1.0}, "seed is 1.0; pass an integer"),
        ({"drop_last": 1}, "drop_last is 1; pass True or False"),
        ({"staleness": 0.5}, "staleness is 0.5; pass a function of the age of an update"),
        ({"engine": "ray"}, "there is no engine 'ray'; use"),
        ({"patience": -1}, "patience is -1; pass a positive number"),
    ],
)
def test_the_error_names_the_value_and_what_to_pass(options: dict[str, Any], text: str) -> None:
    with pytest.raises(fl.FederatedError) as caught:
        fl.Options(**options)

    assert text in str(caught.value)


def test_options_do_not_change() -> None:
    options: Any = fl.Options(clip=1.0)

    with pytest.raises(FrozenInstanceError):
        options.clip = 2.0
    assert replace(options, seed=3) == fl.Options(clip=1.0, seed=3)
    with pytest.raises(fl.FederatedError, match="clip is -1"):
        replace(options, clip=-1)


def test_a_round_needs_half_of_those_that_were_asked_by_default() -> None:
    assert [fl.Options().count_needed(asked) for asked in (1, 4, 5)] == [1, 2, 3]
    assert fl.Options(buffer=4).count_needed(4) == 4
    assert fl.Options(min_results=1).count_needed(5) == 1


def test_a_training_has_a_seed_of_its_own_that_repeats() -> None:
    options = fl.Options(seed=3)

    assert options.derive_seed(1, 0, "bob") == options.derive_seed(1, 0, "bob")
    assert len({options.derive_seed(1, 0, id) for id in ("bob", "alice", 1, "1")}) == 4
    assert options.derive_seed(1) != fl.Options(seed=4).derive_seed(1)
    assert fl.Options(shuffle=False).derive_seed(1) is None
