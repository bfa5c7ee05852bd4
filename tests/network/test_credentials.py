from __future__ import annotations

from pathlib import Path

import pytest

from syft_core.exceptions import WorkerError
from syft_core.network.credentials import make_server_context, read_authorization


@pytest.mark.parametrize(
    ("header", "read"),
    [
        ({}, ("", "")),
        ({"Authorization": "Bearer abc"}, ("bearer", "abc")),
        ({"Authorization": "TICKET  abc "}, ("ticket", "abc")),
        ({"Authorization": "Bearer"}, ("bearer", "")),
        ({"Authorization": "Bearer ab\u00e9"}, ("bearer", "")),
    ],
)
def test_the_secret_of_a_malformed_header_is_empty(header: dict[str, str], read: tuple[str, str]) -> None:
    assert read_authorization(header) == read


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"cannot read .*missing\.pem: No such file .*; `syft-core certs` makes"):
        make_server_context(tmp_path / "missing.pem", None)
