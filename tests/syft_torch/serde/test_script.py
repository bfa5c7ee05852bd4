import warnings

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from syft_core.serde import (  # noqa: E402
    Context,
    SerdeError,
    deserialize,
    serialize,
)
from syft_torch import serde as torch_serde  # noqa: E402

from .tensors import worker  # noqa: E402


def make_script():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))


def test_a_script_is_loaded_only_where_the_receiver_allows_it():
    script = make_script()
    message = serialize(script)
    with pytest.raises(SerdeError, match="run code from the sender"):
        deserialize(message)
    received = deserialize(message, Context(allow_scripts=True))
    assert torch.equal(received(torch.ones(1, 2)), script(torch.ones(1, 2)))


def test_a_script_function_is_callable_after_the_round_trip():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = torch.jit.trace(lambda x: x * 2, torch.ones(2))
    received = deserialize(serialize(function), Context(allow_scripts=True))
    assert torch.equal(received(torch.ones(2)), torch.full((2,), 2.0))


def test_exported_programs_are_refused_with_the_reason():
    program = torch.export.ExportedProgram.__new__(torch.export.ExportedProgram)
    with pytest.raises(SerdeError, match="unpickles"):
        serialize(program)


def test_the_published_script_pair_asks_the_worker():
    simplified = torch_serde._simplify_script_module(None, make_script())
    with pytest.raises(SerdeError, match="run code"):
        torch_serde._detail_script_module(worker(), simplified)
    assert torch_serde._detail_script_module(worker(allow_scripts=True), simplified)(torch.ones(1, 2)).shape == (1, 2)
