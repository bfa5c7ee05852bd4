"""Packed sequences of remote data, with remote lengths."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

import syft_core as sy  # noqa: E402
from syft_core.exceptions import NotCollocatedError, ValueRefusedError  # noqa: E402
from syft_core.hook.chain import plain_below  # noqa: E402
from tests.syft_torch.remote.architectures import differences, twins  # noqa: E402

LENGTHS = torch.tensor([5, 3, 2])


def sequences() -> Any:
    torch.manual_seed(5)
    return torch.randn(3, 5, 4)


def run(layer: Any, x: Any, lengths: Any, **options: Any) -> Any:
    packed, _state = layer(pack_padded_sequence(x, lengths, batch_first=True, **options))
    return pad_packed_sequence(packed, batch_first=True)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}], ids=["one way", "both ways"])
def test_recurrent_layers_accept_packed_sequences_with_consent(kind: Any, options: Any, bob: Any) -> None:
    layer, expected = twins(lambda: kind(4, 3, batch_first=True, **options))
    here, lengths = run(expected, sequences(), LENGTHS)
    here.sum().backward()

    layer.send(bob)
    with sy.revealing("the size of the batch"):
        there, lengths_there = run(layer, sequences().send(bob), LENGTHS.send(bob))
    there.sum().backward()

    assert torch.equal(there.get(), here)
    assert torch.equal(lengths_there.get(), lengths)
    assert differences(layer.get(), expected) == []


def test_a_projected_lstm_accepts_a_state(bob: Any) -> None:
    layer, expected = twins(lambda: nn.LSTM(4, 3, proj_size=2))
    x = sequences().transpose(0, 1)
    packed, _ = expected(pack_padded_sequence(x, LENGTHS), (torch.ones(1, 3, 2), torch.ones(1, 3, 3)))
    here, _ = pad_packed_sequence(packed)

    layer.send(bob)
    with sy.revealing("the size of the batch"):
        state = torch.ones(1, 3, 2).send(bob), torch.ones(1, 3, 3).send(bob)
        packed, _ = layer(pack_padded_sequence(x.send(bob), LENGTHS.send(bob)), state)
    there, _ = pad_packed_sequence(packed)

    assert torch.equal(there.get(), here)


def test_local_lengths_are_refused_with_advice(bob: Any) -> None:
    for lengths in (LENGTHS, LENGTHS.tolist()):
        with pytest.raises(NotCollocatedError, match=r"send the local one: `y = y.send\('bob'\)`"):
            pack_padded_sequence(sequences().send(bob), lengths, batch_first=True)


def test_a_layer_that_checks_the_batch_size_needs_consent(bob: Any) -> None:
    layer = nn.GRU(4, 3, batch_first=True).send(bob)

    with pytest.raises(ValueRefusedError, match="sy.revealing"):
        run(layer, sequences().send(bob), LENGTHS.send(bob))


def test_sequences_are_sorted_on_the_worker(bob: Any) -> None:
    layer, expected = twins(lambda: nn.LSTM(4, 3, batch_first=True))
    unsorted = torch.tensor([3, 5, 2])
    here, lengths = run(expected, sequences(), unsorted, enforce_sorted=False)
    here.sum().backward()
    layer.send(bob)

    with sy.revealing("the size of the batch"):
        there, found = run(layer, sequences().send(bob), unsorted.send(bob), enforce_sorted=False)
    there.sum().backward()

    assert torch.equal(there.get(), here)
    assert torch.equal(found.get(), lengths)
    assert differences(layer.get(), expected) == []


@pytest.mark.parametrize("is_private", [False, True])
def test_the_last_outputs_of_padded_sequences_are_those_of_packed_ones(bob: Any, is_private: bool) -> None:
    layer, expected = twins(lambda: nn.GRU(4, 3, batch_first=True))
    unsorted = torch.tensor([3, 5, 2])
    _, last = expected(pack_padded_sequence(sequences(), unsorted, batch_first=True, enforce_sorted=False))
    last.sum().backward()
    layer.send(bob)
    if is_private:
        bob.load_data([sequences().private_tensor(["me"]).tag("#x"), unsorted.private_tensor(["me"]).tag("#lengths")])
        x, lengths = (bob.search(tag)[0] for tag in ("#x", "#lengths"))
    else:
        x, lengths = sequences().send(bob), unsorted.send(bob)

    found = torch.take_along_dim(layer(x)[0], (lengths - 1).view(-1, 1, 1), 1)[:, 0]
    found.sum().backward()

    torch.testing.assert_close(plain_below(bob.get_obj(found.id_at_location)), last[0])
    for one, other in zip(layer.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(plain_below(bob.get_obj(one.id_at_location)).grad, other.grad)


def test_the_form_of_private_sequences_is_not_disclosed(bob: Any) -> None:
    x = sequences().private_tensor(["alice"])
    bob.load_data([x.tag("#x")])
    (p,) = bob.search("#x")

    with (
        sy.revealing("a look"),
        pytest.raises(ValueRefusedError, match="reviewed.*use `torch.take_along_dim"),
    ):
        pack_padded_sequence(p, LENGTHS.send(bob), batch_first=True)
