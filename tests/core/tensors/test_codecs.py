from __future__ import annotations

import pytest

from syft_core.exceptions import SerdeError
from syft_core.serde import codecs
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.codecs import register_layer_codec


class Foreign(AbstractTensor):
    """A user's layer."""


@pytest.mark.parametrize("code", [3, 249, 255, 299, 399, 999])
def test_a_users_layer_cannot_have_a_reserved_wire_code(code: int) -> None:
    with pytest.raises(SerdeError, match=f"cannot register wire code {code}: codes below 1000 are reserved"):
        register_layer_codec(Foreign, code=code)

    assert Foreign not in codecs.by_type
