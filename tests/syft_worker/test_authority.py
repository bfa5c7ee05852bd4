from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from syft_core import cli
from syft_worker.certificates import user_in

from .test_certificates import shake_hands


def make(folder: Path, *options: str) -> int:
    return cli.main(["certs", str(folder), *options])


def make_trusting_context(folder: Path, user: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if user is not None:
        context.load_cert_chain(folder / f"client-{user}.pem", folder / f"client-{user}.key")
    return context


def test_only_the_owner_can_read_the_keys(tmp_path: Path) -> None:
    make(tmp_path / "new", "--host", "localhost", "--client", "ana")

    keys = sorted((tmp_path / "new").glob("*.key"))
    assert [key.name for key in keys] == ["ca.key", "client-ana.key", "server.key"]
    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}


def test_a_later_call_signs_with_the_same_authority_and_overwrites_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, "--host", "localhost", "--client", "ana")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    assert make(tmp_path, "--client", "bo", "ana") == 1
    assert f"cannot write {tmp_path / 'client-ana.pem'}: it exists" in capsys.readouterr().err
    assert make(tmp_path, "--host", "localhost") == 1
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert make(tmp_path, "--client", "bo") == 0
    assert user_in(shake_hands(tmp_path, make_trusting_context(tmp_path, "bo"), "localhost")) == "bo"


def test_an_authority_without_its_key_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path, "--host", "localhost")
    (tmp_path / "ca.key").unlink()

    assert make(tmp_path, "--client", "ana") == 1
    assert "it is missing or damaged; put the key of ca.pem there" in capsys.readouterr().err
