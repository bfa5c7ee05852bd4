from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from ..syft_mpc.settings import BASE, DIGITS, Setting, assert_close  # noqa: E402


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_an_embedding_bag_is_that_of_torch(torch_hook: Any, mode: str) -> None:
    setting = Setting(torch_hook, 2)
    bag = nn.EmbeddingBag(10, 4, mode=mode)
    twin, words, starts = copy.deepcopy(bag), torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 4])
    bag.fix_precision(base=BASE, precision_fractional=DIGITS).share(*setting.workers, crypto_provider=setting.carol)
    found, expected = bag(words, starts), twin(words, starts)
    (found * found).sum().backward()
    (expected * expected).sum().backward()
    assert_close(setting.read(found.detach()), expected.detach())
    assert_close(setting.read(bag.weight.grad), twin.weight.grad)
