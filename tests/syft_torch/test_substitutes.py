from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from syft_torch.versions import UNCHECKABLE  # noqa: E402


def encoder(**options: Any) -> Any:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)
    return nn.TransformerEncoder(layer, 2).eval()


CHECKED = pytest.mark.skipif(bool(UNCHECKABLE), reason="this torch cannot check the arguments of its fused kernels")


PADDING = torch.tensor([[False, False, False, False, True], [False, False, True, True, True]])


@CHECKED
@pytest.mark.parametrize("options", [{}, {"activation": "gelu"}, {"norm_first": True}])
@pytest.mark.parametrize("padding", [None, PADDING])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_an_encoder_takes_the_fast_path_as_locally(options: Any, padding: Any, bob: Any) -> None:
    model, x = encoder(**options), torch.randn(2, 5, 8)
    remote = copy.deepcopy(model).send(bob)

    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding)
        found = remote(x.send(bob), src_key_padding_mask=None if padding is None else padding.send(bob))

    assert torch.equal(found.get(), expected)


def test_an_encoder_in_training_takes_the_slow_path_as_locally(bob: Any) -> None:
    model, x = encoder(), torch.randn(2, 5, 8)
    remote = copy.deepcopy(model).send(bob)

    expected = model(x, src_key_padding_mask=PADDING)
    found = remote(x.send(bob), src_key_padding_mask=PADDING.send(bob))

    assert torch.equal(found.get(), expected.detach())


@CHECKED
def test_attention_takes_the_fast_path_as_locally(bob: Any) -> None:
    torch.manual_seed(0)
    model, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(2, 5, 8)
    remote, there = copy.deepcopy(model).send(bob), x.send(bob)

    with torch.no_grad():
        expected, found = model(x, x, x), remote(there, there, there)

    assert torch.equal(found[0].get(), expected[0])
    assert torch.equal(found[1].get(), expected[1])


@CHECKED
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_padding_with_gaps_is_refused_with_advice(bob: Any) -> None:
    model, x = encoder(), torch.randn(2, 5, 8)
    remote, gaps = copy.deepcopy(model).send(bob), PADDING.flip(1)

    with torch.no_grad():
        with pytest.raises(ValueError, match="use_nested_tensor = False"):
            remote(x.send(bob), src_key_padding_mask=gaps.send(bob)).get()
        remote.use_nested_tensor = False
        found = remote(x.send(bob), src_key_padding_mask=gaps.send(bob))
        expected = model(x, src_key_padding_mask=gaps)

    assert torch.equal(found.get(), expected)


@pytest.fixture
def slow_path() -> Any:
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(True)


@pytest.mark.parametrize("padding", [None, PADDING, PADDING.flip(1)])
def test_an_encoder_without_the_fast_path_computes_as_locally(padding: Any, bob: Any, slow_path: Any) -> None:
    model, x = encoder(), torch.randn(2, 5, 8)
    remote = copy.deepcopy(model).send(bob)

    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding)
        if UNCHECKABLE:  # The remote encoder takes the slow path by itself.
            torch.backends.mha.set_fastpath_enabled(True)
        found = remote(x.send(bob), src_key_padding_mask=None if padding is None else padding.send(bob))

    assert torch.equal(found.get(), expected)
