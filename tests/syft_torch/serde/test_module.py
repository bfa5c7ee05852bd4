from collections import OrderedDict

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from syft_core.serde import (  # noqa: E402
    SerdeError,
    serialize,
)
from syft_torch import serde as torch_serde  # noqa: E402

from ...serde.equality import same  # noqa: E402
from .tensors import there_and_back  # noqa: E402


def network():
    return nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(1, 4, 3, padding=1),
            norm=nn.BatchNorm2d(4),
            act=nn.LeakyReLU(0.2),
            flat=nn.Flatten(),
            drop=nn.Dropout(0.5),
            out=nn.Linear(4 * 16, 3),
        )
    )


def test_a_state_dict_comes_back_with_its_metadata():
    state = network().state_dict()
    received = there_and_back(state)
    assert same(dict(received), dict(state))
    assert same(received._metadata, state._metadata)
    network().load_state_dict(received)


@pytest.mark.parametrize("training", [True, False])
def test_a_module_computes_the_same(training):
    model = network().train(training)
    received = there_and_back(model)
    assert received.training is training
    batch = torch.randn(2, 1, 4, 4)
    torch.manual_seed(0)
    expected = model(batch)
    torch.manual_seed(0)
    assert torch.equal(received(batch), expected)


def test_a_received_module_can_be_trained():
    received = there_and_back(network())
    optimizer = torch.optim.SGD(received.parameters(), lr=0.1)
    received(torch.randn(2, 1, 4, 4)).sum().backward()
    optimizer.step()
    assert all(parameter.grad is not None for parameter in received.parameters())


STANDARD = {
    "Bilinear": lambda: nn.Bilinear(2, 3, 4),
    "ConvTranspose1d": lambda: nn.ConvTranspose1d(2, 3, 2),
    "Embedding": lambda: nn.Embedding(5, 3, padding_idx=1),
    "EmbeddingBag": lambda: nn.EmbeddingBag(5, 3),
    "GroupNorm": lambda: nn.GroupNorm(2, 4),
    "LSTM": lambda: nn.LSTM(3, 4, 2, bidirectional=True),
    "GRU": lambda: nn.GRU(3, 4),
    "RNNCell": lambda: nn.RNNCell(3, 4),
    "MultiheadAttention": lambda: nn.MultiheadAttention(4, 2),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 8, activation=nn.functional.gelu),
    "Transformer": lambda: nn.Transformer(4, 2, 1, 1, 8, batch_first=True),
    "ModuleDict": lambda: nn.ModuleDict({"a": nn.ReLU(), "b": nn.ModuleList([nn.Tanh(), nn.GELU("tanh")])}),
    "ParameterList": lambda: nn.ParameterList([torch.ones(2), torch.zeros(3)]),
    "ParameterDict": lambda: nn.ParameterDict({"a": torch.ones(2)}),
    "CrossEntropyLoss": lambda: nn.CrossEntropyLoss(torch.ones(3), label_smoothing=0.1),
    "AdaptiveLogSoftmax": lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 10, [3, 6]),
    "TripletMarginWithDistance": lambda: nn.TripletMarginWithDistanceLoss(
        distance_function=nn.functional.pairwise_distance
    ),
    "Upsample": lambda: nn.Upsample(scale_factor=2.0),
    "PixelShuffle": lambda: nn.PixelShuffle(2),
}


@pytest.mark.parametrize("build", STANDARD.values(), ids=STANDARD)
@pytest.mark.filterwarnings("ignore:.*nested_tensor.*")
def test_standard_layers_come_back(build):
    module = build()
    received = there_and_back(module)
    assert type(received) is type(module)
    assert str(received) == str(module)
    assert same(dict(received.state_dict()), dict(module.state_dict()))


def test_a_recurrent_layer_computes_the_same():
    layer, batch = nn.LSTM(3, 4, 2), torch.randn(5, 2, 3)
    assert torch.equal(there_and_back(layer)(batch)[0], layer(batch)[0])


def test_tied_weights_stay_tied():
    model = nn.Sequential(nn.Linear(50, 50), nn.Linear(50, 50))
    model[1].weight = model[0].weight
    received = there_and_back(model)
    assert received[0].weight is received[1].weight


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.scale = 3
        self.register_buffer("offset", torch.ones(2), persistent=False)

    def forward(self, x):
        return self.inner(x) * self.scale + self.offset


def test_a_users_module_is_refused_until_it_is_registered():
    class Unlisted(Net):
        pass

    with pytest.raises(SerdeError, match=r"its class is not registered.*register_module\(Unlisted, 'Unlisted'\)"):
        serialize(Unlisted())

    torch_serde.register_module(Net, "tests.Net")
    model, batch = Net(), torch.randn(3, 2)
    received = there_and_back(model)
    assert torch.equal(received(batch), model(batch))
    assert received._non_persistent_buffers_set == {"offset"}


def test_only_module_classes_can_be_registered():
    with pytest.raises(SerdeError, match=r"it is not a subclass of torch\.nn\.Module"):
        torch_serde.register_module(dict, "tests.dict")


def test_a_module_with_hooks_is_refused():
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, args, output: None)
    with pytest.raises(SerdeError, match=r"hooks are code and cannot be sent \(_forward_hooks\)"):
        serialize(layer)


def test_a_module_with_an_unlisted_function_is_refused():
    layer = nn.TransformerEncoderLayer(4, 2, 8, activation=lambda x: x)
    with pytest.raises(SerdeError, match="functions are code"):
        serialize(layer)
