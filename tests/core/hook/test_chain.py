from __future__ import annotations

from typing import Any

import pytest
import toy
from toy_layers import Pointer, Scaled, Watcher

from syft_core.hook.chain import below_wrapper, end_of, is_chain, is_wrapper, iter_links, plain_below, plain_end

pytestmark = pytest.mark.usefixtures("hook")


@pytest.fixture
def vector() -> toy.Vector:
    return toy.Vector([1.0])


@pytest.fixture
def chain(vector: toy.Vector) -> Any:
    return Watcher().on(Scaled().on(vector, wrap=False))


def test_the_links_of_a_chain_are_its_wrapper_its_layers_and_its_end(chain: Any, vector: toy.Vector) -> None:
    assert [type(link).__name__ for link in iter_links(chain)] == ["Wrapper", "Watcher", "Scaled", "Vector"]
    assert list(iter_links(vector)) == [vector]
    assert list(iter_links(None)) == []


def test_the_end_of_a_chain_is_below_all_layers(chain: Any, vector: toy.Vector) -> None:
    assert end_of(chain) is vector
    assert end_of(vector) is vector


def test_a_layer_with_several_children_is_an_end() -> None:
    layer = Watcher()
    layer.child = {"bob": toy.Vector([1.0])}

    assert end_of(layer) is layer


def test_a_chain_that_ends_elsewhere_has_no_plain_end(chain: Any, vector: toy.Vector) -> None:
    layer = Watcher()
    layer.child = Pointer("bob")

    assert plain_end(chain) is vector
    assert plain_end(vector) is vector
    assert plain_end(layer) is None
    assert plain_end("text") is None


def test_only_transparent_layers_show_the_tensor_below_them(chain: Any, vector: toy.Vector) -> None:
    assert plain_below(Watcher().on(vector)) is vector
    assert plain_below(vector) is vector
    assert plain_below(chain) is None
    assert plain_below(3) is None


def test_wrappers_layers_and_plain_tensors_are_told_apart(chain: Any, vector: toy.Vector) -> None:
    links = list(iter_links(chain))

    assert [is_wrapper(link) for link in links] == [True, False, False, False]
    assert [is_chain(link) for link in links] == [True, True, True, False]
    assert below_wrapper(chain) is chain.child
    assert below_wrapper(chain.child) is chain.child
    assert below_wrapper(vector) is vector
