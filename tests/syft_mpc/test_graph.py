"""Methods that rebuild a chain keep the graph of torch's autograd, end it as documented, or refuse."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import OperationNotAllowedError  # noqa: E402

from .settings import Setting  # noqa: E402

PRECISION: dict[str, Any] = {"base": 2, "precision_fractional": 8}


def make(setting: Setting, **options: Any) -> Any:
    """Return two numbers that require a gradient, shared if there are parties."""
    x = torch.tensor([1.0, 2.0]).fix_precision(**PRECISION)
    if setting.workers:
        x = x.share(*setting.workers, crypto_provider=setting.carol, **options)
    return x.requires_grad_()


def gradient_through(setting: Setting, convert: Callable[[Any], Any], **options: Any) -> list[float]:
    """Return the gradient of the numbers if twice their sum goes through a conversion, and their sum does not."""
    x = make(setting, **options)
    (convert(x * 2).sum() + x.sum()).backward()
    gradient = x.grad.get() if setting.workers else x.grad
    return gradient.float_precision().tolist()  # type: ignore[no-any-return]  # a list


KEEPS: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: x.copy(),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.contiguous(),
    "cpu": lambda x: x.cpu(),
    "tag": lambda x: x.tag("#x"),
    "as_tensor": torch.as_tensor,
    "twice": lambda x: x.double().float(),
    "into another": lambda x: torch.zeros_like(x.detach()).add_(x),
}


@pytest.mark.parametrize("parties", [0, 2, 3], ids=["unshared", "two", "three"])
def test_a_copy_or_conversion_keeps_the_graph(torch_hook: Any, parties: int) -> None:
    setting = Setting(torch_hook, parties)

    for name, convert in KEEPS.items():
        assert gradient_through(setting, convert) == [3.0, 3.0], name


@pytest.mark.parametrize("protocol", ["fast", "snn"])
def test_refreshed_shares_keep_the_graph(torch_hook: Any, protocol: str) -> None:
    setting = Setting(torch_hook)

    assert gradient_through(setting, lambda x: x.refresh(), protocol=protocol) == [3.0, 3.0]
    assert gradient_through(setting, lambda x: x.sum().refresh().refresh(), protocol=protocol) == [3.0, 3.0]
    x = make(setting)
    (x.refresh() * 2).sum().backward()
    assert x.grad.get().float_precision().tolist() == [2.0, 2.0]


def test_refreshed_integers_are_the_same_integers(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    x = setting.share(torch.tensor([3, -4]))

    assert x.refresh().get().tolist() == [3, -4]


ENDS: dict[str, Callable[[Any], Any]] = {
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "get": lambda x: x.copy().get(),
    "decoded": lambda x: x.copy().get().float_precision(),
}


def test_fetched_and_decoded_numbers_are_outside_of_the_graph(torch_hook: Any) -> None:
    x = make(Setting(torch_hook)) * 2

    for convert in ENDS.values():
        assert not convert(x).requires_grad
    assert not (make(Setting(torch_hook, 0)) * 2).float_precision().requires_grad


def test_what_would_end_the_graph_unnoticed_is_refused(torch_hook: Any) -> None:
    setting, unshared = Setting(torch_hook), Setting(torch_hook, 0)
    plain = torch.tensor([1.0, 2.0], requires_grad=True)
    parties: dict[str, Any] = {"workers": setting.workers, "crypto_provider": setting.carol}
    refused: list[Callable[[], Any]] = [
        lambda: (plain * 2).fix_precision(),
        lambda: (plain * 2).fix_precision_(),
        lambda: (plain * 2).encrypt(**parties),
        lambda: setting.share(make(unshared) * 2),
        lambda: (make(unshared) * 2).share_(*setting.workers, crypto_provider=setting.carol),
        lambda: (make(unshared) * 2).private_tensor([]),
        lambda: (plain.send(setting.workers[0]) * 2).fix_precision(),
    ]

    for call in refused:
        with pytest.raises(OperationNotAllowedError, match="requires a gradient: the graph would end here"):
            call()
    assert (plain * 2).detach().encrypt(**parties).decrypt().tolist() == [2.0, 4.0]
    with torch.no_grad():
        assert (plain * 2).encrypt(**parties).decrypt().tolist() == [2.0, 4.0]


def test_a_leaf_is_encoded_and_shared_as_a_leaf(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    plain = torch.tensor([1.0, 2.0], requires_grad=True)
    encoded = plain.fix_precision(**PRECISION)

    copies = copy.copy(encoded), copy.deepcopy(setting.share(encoded))
    for x in (encoded, encoded.private_tensor(["me"]), setting.share(encoded), *copies):
        assert x.is_leaf
        assert x.requires_grad
