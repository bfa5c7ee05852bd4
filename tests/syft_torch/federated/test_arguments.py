from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import pytest

pytest.importorskip("torch")

from syft_torch import federated as fl  # torch may be missing
from syft_torch.federated.arguments import PARAMETERS

from .trainers import cross_entropy, make_data, make_model, make_trainer, sgd


@pytest.mark.parametrize("name", [field.name for field in fields(fl.Options)])
def test_an_option_that_the_trainer_gets_itself_is_refused_with_the_right_place(hook: Any, name: str) -> None:
    given: Any = {name: 1}

    for error in (fl.FederatedError, TypeError):
        with pytest.raises(error, match=rf"pass it as `options=fl\.Options\({name}=\.\.\.\)`"):
            fl.FederatedTrainer(make_model(), cross_entropy, sgd, make_data(hook), **given)


@pytest.mark.parametrize(
    ("name", "near"), [("clipp", "clip"), ("epoch", "epochs"), ("clients_per_rounds", "clients_per_round")]
)
def test_an_unknown_argument_is_refused_with_the_nearest_name(hook: Any, name: str, near: str) -> None:
    given: Any = {name: 1}

    with pytest.raises(TypeError, match=f"there is no argument or option '{name}'; did you mean '{near}'"):
        fl.FederatedTrainer(make_model(), cross_entropy, sgd, make_data(hook), **given)


@pytest.mark.parametrize("given", [3, {"clip": 1.0}, fl.Options])
def test_options_of_another_type_are_refused(hook: Any, given: Any) -> None:
    with pytest.raises(fl.FederatedError, match=rf"the options are a {type(given).__name__}; pass .*fl\.Options\("):
        fl.FederatedTrainer(make_model(), cross_entropy, sgd, make_data(hook), None, 1, 16, given)


def test_a_trainer_has_few_parameters() -> None:
    found = inspect.signature(fl.FederatedTrainer).parameters

    assert (*found,) == (*PARAMETERS, "misplaced")
    assert len(PARAMETERS) <= 10


def test_options_are_those_of_the_trainer(hook: Any) -> None:
    assert make_trainer(hook).options == fl.Options()
    assert make_trainer(hook, seed=3, clip=1.0).options == fl.Options(seed=3, clip=1.0)
