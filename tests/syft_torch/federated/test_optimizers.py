from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from syft_torch.federated.errors import FederatedError  # noqa: E402
from syft_torch.federated.optimizers import count_states, find_obstacle, require_valid  # noqa: E402

from .settings import Setting  # noqa: E402


def test_parameters_may_have_groups_with_other_numbers(setting: Setting) -> None:
    first, last = setting.model[0], setting.model[2]
    groups = [{"params": [*last.parameters()], "lr": 0.5}, {"params": [*first.parameters()]}]
    setting.make = lambda _p: torch.optim.SGD(groups, lr=0.1)

    difference, _ = setting.train()

    assert torch.equal(difference, setting.train_here()[0])


@pytest.mark.parametrize(("name", "value"), [("max_iter", 101), ("max_eval", 10**9), ("history_size", 10**6)])
def test_a_step_that_could_take_too_long_is_refused(name: str, value: int) -> None:
    numbers = {"lr": 1, "max_iter": 20, "max_eval": 25, "history_size": 10, name: value}

    with pytest.raises(FederatedError, match=f"needs {name!r} from 1 to"):
        require_valid("LBFGS", ((numbers, (0,)),))


def test_the_memory_of_earlier_steps_counts() -> None:
    assert count_states("Adam", (({}, (0,)),)) == 3
    assert count_states("LBFGS", (({"history_size": 10}, (0,)),)) == 28


def test_optimizers_of_whole_parameters_are_not_stacked() -> None:
    assert find_obstacle("Adafactor") == "Adafactor treats a parameter as a whole"
    assert find_obstacle("Adam") is None
