from __future__ import annotations

from typing import Any

import pytest

from syft_core.hook.contracts.kernels import KernelSupport


def test_a_backend_without_kernels_supports_no_operation_on_shares() -> None:
    support = KernelSupport()

    assert support.kernels is None
    assert support.convolve is None
    assert not any((support.structural, support.masking, support.transposing, support.selecting))
    assert not support.alternatives


@pytest.mark.parametrize(
    "call",
    [
        lambda support: support.expand([1], (2,)),
        lambda support: support.permute([1], (0,)),
        lambda support: support.join([[1]], 0),
        lambda support: support.real_dtype([1]),
    ],
)
def test_what_only_a_backend_can_do_is_not_guessed(call: Any) -> None:
    with pytest.raises(NotImplementedError):
        call(KernelSupport())
