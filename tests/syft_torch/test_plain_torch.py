"""While torch is hooked, plain tensors and torch's own tools behave as usual."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

pytestmark = [pytest.mark.usefixtures("hook"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def make_and_add(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) + torch.tensor([1.0, 2.0])


def pack_and_unpack(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")  # torch 2.15 calls it so
def test_d72_scripting_works(hook: Any) -> None:
    scripted = torch.jit.script(make_and_add)
    assert scripted(torch.zeros(2)).tolist() == [1.0, 2.0]
    module = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert module(torch.ones(1, 2)).shape == (1, 2)
    repeated = torch.jit.script(pack_and_unpack)
    assert repeated(torch.ones(2, 3, 1), torch.tensor([2, 3])).flatten().tolist() == [1, 1, 0, 1, 1, 1]


def test_compile_works(hook: Any) -> None:
    compiled = torch.compile(make_and_add, backend="eager", fullgraph=True)
    assert compiled(torch.zeros(2)).tolist() == [1.0, 2.0]


def test_d83_plain_torch_is_untouched(hook: Any) -> None:
    x = torch.ones(2)
    assert torch.tensor([torch.tensor(1.0), torch.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert (x == None) is False  # noqa: E711
    assert type(x + x) is torch.Tensor
    assert type(nn.Parameter(x)) is nn.Parameter
    assert torch.Tensor.__module__ == "torch"


def test_pickling_and_saving_work(hook: Any) -> None:
    x = torch.arange(3.0)
    assert torch.equal(pickle.loads(pickle.dumps(x)), x)
    buffer = io.BytesIO()
    torch.save({"x": x}, buffer)
    buffer.seek(0)
    assert torch.equal(torch.load(buffer, weights_only=True)["x"], x)


def test_a_saved_tensor_with_an_id_loads_without_this_library(hook: Any, tmp_path: Any) -> None:
    x = torch.arange(3.0)
    assert x.id
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "state.pt")
    torch.save(x, tmp_path / "x.pt")
    program = (
        "import sys, torch\n"
        "sys.modules['syft_core'] = sys.modules['syft_torch'] = None\n"
        f"print(torch.load({str(tmp_path / 'x.pt')!r}).tolist(), len(torch.load({str(tmp_path / 'state.pt')!r})))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[0.0, 1.0, 2.0] 2"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.func.vmap(torch.sin)(x),
        lambda x: torch.func.grad(lambda z: z.sin().sum())(x),
        lambda x: Double.apply(x),
        lambda x: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False),
        lambda x: ENCODER(x),
    ],
)
def test_compiled_functions_of_plain_tensors_have_no_graph_breaks(program: Any, hook: Any) -> None:
    x = torch.randn(2, 3, 8)
    compiled = torch.compile(program, backend="eager", fullgraph=True)

    with torch.no_grad():
        assert torch.allclose(compiled(x), program(x))
    torch._dynamo.reset()


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2


ENCODER = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
