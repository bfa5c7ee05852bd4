from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from ..syft_mpc.settings import Setting  # noqa: E402
from ..syft_mpc.test_programs import require_equal  # noqa: E402

nn, F = torch.nn, torch.nn.functional


_numbers = np.random.default_rng(3)


SEQUENCE = torch.tensor(_numbers.normal(size=(2, 3, 6)), dtype=torch.float32)


def read(setting: Setting, value: Any) -> Any:
    """Return plain numbers, also of several tensors."""
    if isinstance(value, tuple | list):
        return [read(setting, part) for part in value]
    return value if type(value) is torch.Tensor or value is None else torch.tensor(setting.read(value.detach()))


@pytest.mark.filterwarnings("ignore:.*nested.tensor")
@pytest.mark.parametrize("norm_first", [False, True])
def test_a_transformer_in_evaluation_computes_what_it_computes_on_plain_numbers(
    torch_hook: Any, norm_first: bool
) -> None:
    setting = Setting(torch_hook)
    layer = nn.TransformerEncoderLayer(6, 2, 8, activation="gelu", batch_first=True, norm_first=norm_first)
    model, attention = nn.TransformerEncoder(layer, 2).eval(), nn.MultiheadAttention(6, 2, batch_first=True).eval()
    short = torch.tensor([[False, False, True], [False, False, False]])
    causal = nn.Transformer.generate_square_subsequent_mask(3)

    def run(x: Any) -> Any:
        with torch.no_grad():
            return [
                model(x),
                model(x, src_key_padding_mask=short)[:, :2],
                model(x, mask=causal),
                *attention(x, x, x, key_padding_mask=short),
                attention(x, x, x, average_attn_weights=False)[1],
            ]

    expected = run(SEQUENCE)
    for net in (model, attention):
        net.encrypt(workers=setting.workers, crypto_provider=setting.carol, base=2, precision_fractional=16)
    require_equal(read(setting, run(setting.put(SEQUENCE))), expected)


def test_plain_models_still_use_the_fused_kernels(torch_hook: Any) -> None:
    model, enabled = nn.LSTM(6, 4), torch.backends.mkldnn.enabled

    model(SEQUENCE)
    model.encrypt(workers=Setting(torch_hook).workers, crypto_provider=Setting(torch_hook).carol)

    assert torch.backends.mkldnn.enabled is enabled
