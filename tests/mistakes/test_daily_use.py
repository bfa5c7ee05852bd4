"""What a notebook shows of remote tensors and models."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn


def test_printing_a_pointer_shows_the_form_and_the_place_of_its_object(world: dict[str, Any]) -> None:
    text = r"\(Wrapper\)>\[PointerTensor \| me:\d+ -> bob:\d+\] shape \(3,\), torch\.float32, on bob"

    assert re.fullmatch(text, repr(world["p"]))
    assert str(world["p"]) == f"{world['p']}" == repr(world["p"])


def test_a_pointer_to_an_object_that_is_gone_can_be_printed(world: dict[str, Any]) -> None:
    world["bob"].clear_objects()

    assert repr(world["p"]).startswith("(Wrapper)>[PointerTensor | me:")


def test_completion_offers_the_methods_of_tensors_and_of_pointers(world: dict[str, Any]) -> None:
    assert {"mean", "shape", "grad", "get", "send", "move", "copy", "request", "tag"} <= set(dir(world["p"]))


def test_a_format_works_on_a_number_and_under_consent(world: dict[str, Any]) -> None:
    with world["sy"].revealing("a plot"):
        assert f"{world['p'].sum():.2f}" == "6.00"
        assert round(world["p"].sum() / 7, 2) == 0.86


def test_printing_a_model_shows_where_it_is(world: dict[str, Any]) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    at_home = repr(model)

    assert repr(nn.Linear(3, 2).send("bob")) == "Linear(in_features=3, out_features=2, bias=True, on bob)"
    assert repr(model.send("bob")) == at_home.replace("(\n", "(\n  on bob\n", 1)
    assert repr(copy.deepcopy(model)) == repr(model)
    assert repr(model.move("alice")) == at_home.replace("(\n", "(\n  on alice\n", 1)
    assert repr(model.get()) == at_home


def test_a_function_that_is_not_listed_is_named_as_users_know_it(world: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="cannot run 'torch.Tensor.__dir__'"):
        torch.Tensor.__dir__(world["p"])
