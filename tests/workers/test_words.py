"""Tags and descriptions stay with a tensor, whatever layer is put on it or taken off, so that a search finds it."""

from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.tensors.polynomial import PolynomialTensor
from syft_core.tensors.private import PrivateTensor

WORDS = ({"#a", "#b"}, "ages of patients")


@pytest.fixture(params=["torch", "numpy"])
def anyhook(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(request.param)
    return request.getfixturevalue("hook" if request.param == "torch" else "numpy_hook")


@pytest.fixture
def parties(anyhook: Any, serialize: bool) -> list[Any]:
    return [sy.VirtualWorker(anyhook, id=name, serialize=serialize) for name in ("bob", "alice", "carol")]


@pytest.fixture
def x(anyhook: Any) -> Any:
    made = anyhook.create_zeros(2, 2)
    made = made if anyhook.name == "torch" else anyhook.array(made)
    return made.tag("#a", "#b").describe(WORDS[1])


def words_of(chain: Any) -> tuple[set[str], str | None]:
    return set(chain.tags), chain.description


def share(x: Any, parties: list[Any], **options: Any) -> Any:
    return x.fix_prec().share(*parties[:2], crypto_provider=parties[2], **options)


LAYERS: dict[str, Any] = {
    "private": lambda x, parties: x.private_tensor(["ana"]),
    "private, no wrapper": lambda x, parties: x.private_tensor(["ana"], no_wrap=True),
    "fixed precision": lambda x, parties: x.fix_prec(),
    "fixed precision, no wrapper": lambda x, parties: x.fix_prec(no_wrap=True),
    "decoded": lambda x, parties: x.fix_prec().float_prec(),
    "shared": share,
    "shared, no wrapper": lambda x, parties: share(x, parties, no_wrap=True),
    "authenticated": lambda x, parties: x.fix_prec(base=2, precision_fractional=8).share(
        *parties[:2], crypto_provider=parties[2], protocol="authenticated"
    ),
    "encrypted": lambda x, parties: x.encrypt(workers=parties[:2], crypto_provider=parties[2]),
    "decrypted": lambda x, parties: x.encrypt(workers=parties[:2], crypto_provider=parties[2]).decrypt(),
    "refreshed": lambda x, parties: share(x, parties).refresh(),
    "pointer": lambda x, parties: x.send(parties[0]),
    "pointer, no wrapper": lambda x, parties: x.send(parties[0], no_wrap=True),
    "fetched": lambda x, parties: x.send(parties[0]).get(),
    "moved": lambda x, parties: x.send(parties[0]).move(parties[1]),
    "private and sent": lambda x, parties: x.private_tensor(["me"]).send(parties[0]),
    "private, sent and fetched": lambda x, parties: x.private_tensor(["me"]).send(parties[0]).get(),
    "logging on a pointer": lambda x, parties: LoggingTensor().on(x.send(parties[0])),
    "logging on a pointer, fetched": lambda x, parties: LoggingTensor().on(x.send(parties[0])).get(),
    "two layers": lambda x, parties: LoggingTensor().on(PlusIsMinusTensor().on(x)),
    "copy": lambda x, parties: x.copy(),
    "copy of a chain": lambda x, parties: LoggingTensor().on(x).copy(),
    "clone of a layer": lambda x, parties: LoggingTensor().on(x, wrap=False).clone(),
    "pointer to several": lambda x, parties: x.send(*parties[:2]),
}
for cls in (LoggingTensor, PlusIsMinusTensor, PolynomialTensor):
    LAYERS[f"{cls.__name__}.on"] = lambda x, parties, cls=cls: cls().on(x)
    LAYERS[f"{cls.__name__}.on, no wrapper"] = lambda x, parties, cls=cls: cls().on(x, wrap=False)
LAYERS["PrivateTensor.on"] = lambda x, parties: PrivateTensor(frozenset({"me"})).on(x)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_keeps_tags_and_description(x: Any, parties: list[Any], layer: str) -> None:
    made = LAYERS[layer](x, parties)

    if not hasattr(made, "tags"):
        assert layer in ("fetched", "decrypted")
        pytest.skip("this framework's workers keep plain arrays, which cannot have tags")
    assert words_of(made) == WORDS
    assert words_of(x) == WORDS
    made.tags.add("#new")
    assert words_of(x) == WORDS


def test_every_layer_is_in_the_table() -> None:
    """A new layer class needs a line above."""
    modules = {cls.__name__: cls.__module__ for cls in _subclasses(AbstractTensor)}
    names = {name for name, module in modules.items() if module.startswith("syft_") and ".testing." not in module}
    assert names == {
        "AdditiveSharingTensor", "AuthenticatedTensor", "FixedPrecisionTensor", "LoggingTensor", "MultiPointerTensor",
        "NumericTensor", "PlusIsMinusTensor", "PointerTensor", "PolynomialTensor", "PrivateTensor", "SecretPlaces",
            "SharedTensor",
    }  # fmt: skip  # several are bases of others


@pytest.mark.parametrize("layer", ["private", "fixed precision", "LoggingTensor.on", "two layers", "copy"])
def test_a_search_finds_data_under_a_layer(x: Any, parties: list[Any], layer: str) -> None:
    bob = parties[0]
    bob.load_data([LAYERS[layer](x, parties)])

    (found,) = bob.search(["#a", "#b"])

    assert words_of(found) == WORDS


def test_words_of_a_layer_reach_its_wrapper(x: Any) -> None:
    layer = LoggingTensor(tags={"#own"}, description="own")
    assert words_of(layer.on(x)) == ({"#own"}, "own")


def test_a_layer_takes_over_the_id_of_a_tensor_that_it_is_put_on(x: Any) -> None:
    before = x.id
    assert LoggingTensor().on(x).id == before
    assert LoggingTensor().on(LoggingTensor().on(x)).id == before
    assert x.copy().id != before
    assert x.private_tensor(["me"]).id != before


def _subclasses(cls: type) -> set[type]:
    return {cls, *[deep for sub in cls.__subclasses__() for deep in _subclasses(sub)]} - {AbstractTensor}
