from __future__ import annotations

import pytest
import toy
from syft_toy.wrapper import Wrapper
from toy_layers import Negating, Scaled, Watcher

from syft_core.exceptions import MixedLayersError
from syft_core.hook.dispatch import OPAQUE, TRANSPARENT, WRAPPER
from syft_core.tensors.abstract import AbstractTensor

pytestmark = pytest.mark.usefixtures("hook")


@pytest.mark.parametrize("flip", [False, True])
def test_the_layer_of_the_higher_rank_is_unwrapped_first(flip: bool) -> None:
    operands = [Watcher().on(toy.Vector([1.0])), Scaled().on(toy.Vector([2.0]))]

    x, y = reversed(operands) if flip else operands

    assert str(x + y) == "(Wrapper)>Watcher>Scaled>Vector([3.0])"


def test_ranks_are_in_the_order_of_the_chain() -> None:
    assert WRAPPER > TRANSPARENT > OPAQUE
    assert (Wrapper.rank, Watcher.rank, AbstractTensor.rank) == (WRAPPER, TRANSPARENT, OPAQUE)


def test_two_types_of_opaque_layers_in_one_call_are_refused_with_advice() -> None:
    with pytest.raises(MixedLayersError) as caught:
        Scaled().on(toy.Vector([1.0])) * Negating().on(toy.Vector([1.0]))

    assert str(caught.value) == (
        "cannot run 'toy.Vector.__mul__': it mixes a Scaled with a Negating; "
        "put both operands under the same layers first, e.g. `Scaled().on(x)`"
    )


def test_opaque_layers_are_refused_also_in_lists_and_keywords() -> None:
    x, y = Scaled().on(toy.Vector([1.0])), Negating().on(toy.Vector([1.0]))

    with pytest.raises(MixedLayersError, match="mixes a Scaled with a Negating"):
        toy.cat([x, y])
    with pytest.raises(MixedLayersError, match="mixes a Scaled with a Negating"):
        toy.add(x, 1, out=y)
