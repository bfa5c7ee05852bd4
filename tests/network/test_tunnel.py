"""A worker behind a firewall: clients reach it through the reverse SSH tunnel of deploy/, with OpenSSH itself."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import syft_core as sy
from syft_core.cli import main
from syft_core.exceptions import AuthenticationError, GetNotPermittedError

from .processes import find_port, wait_for_port
from .supervised import SupervisedWorker, supervise

np = pytest.importorskip("numpy")
SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")
DEPLOY = Path(__file__).parents[2] / "deploy"
pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None, reason="OpenSSH: `apt-get install openssh-server` installs it"
)


class Gateway:
    """The machine that everybody reaches, and the tunnel that the machine of the worker opens to it."""

    def __init__(self, folder: Path, worker_port: int) -> None:
        self._folder, self._ssh_port, self.port, self._worker = folder, find_port(), find_port(), worker_port
        for name in ("host", "tunnel"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True, timeout=120
            )
        public = (folder / "host.pub").read_text()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self._ssh_port} {public}")
        # As the page says: this key may listen on one port, and nothing else.
        options = f'restrict,port-forwarding,permitlisten="127.0.0.1:{self.port}"'
        (folder / "authorized_keys").write_text(f"{options} {(folder / 'tunnel.pub').read_text()}")
        settings = {
            "ListenAddress": f"127.0.0.1:{self._ssh_port}",
            "HostKey": folder / "host",
            "AuthorizedKeysFile": folder / "authorized_keys",
            "GatewayPorts": "clientspecified",
            "PidFile": "none",
            "StrictModes": "no",  # The folder of a test may be writable by others.
            "UsePAM": "no",
        }
        (folder / "sshd_config").write_text("".join([f"{name} {value}\n" for name, value in settings.items()]))
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self._server = subprocess.Popen([str(SSHD), "-D", "-e", "-f", folder / "sshd_config"], stderr=subprocess.PIPE)
        wait_for_port(self._ssh_port)
        self._tunnel: subprocess.Popen[bytes] | None = None

    def open_tunnel(self) -> None:
        """Start the program of the unit, with the addresses of this test."""
        (line,) = re.findall(r"ExecStart=(.*)", (DEPLOY / "syft-tunnel.service").read_text())
        line = line.replace("/etc/syft/tunnel.key", str(self._folder / "tunnel"))
        line = line.replace("/etc/syft/known_hosts", str(self._folder / "known_hosts"))
        line = line.replace("0.0.0.0:8777:127.0.0.1:8777", f"127.0.0.1:{self.port}:127.0.0.1:{self._worker}")
        line = line.replace("tunnel@gateway.example", f"{getpass.getuser()}@127.0.0.1")
        more = ["-p", str(self._ssh_port), "-F", "none"]
        program, *words = shlex.split(line)
        self._tunnel = subprocess.Popen([str(shutil.which(Path(program).name)), *more, *words])
        wait_for_port(self.port)

    def cut(self) -> None:
        assert self._tunnel is not None
        self._tunnel.kill()
        self._tunnel.wait(timeout=60)

    def close(self) -> None:
        if self._tunnel is not None and self._tunnel.poll() is None:
            self.cut()
        self._server.terminate()
        self._server.communicate(timeout=60)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[SupervisedWorker]:
    """A worker called north, which only this machine reaches."""
    np.save(tmp_path / "ages.npy", np.array([30.0, 40.0, 50.0]))
    assert main(["certs", str(tmp_path / "certs"), "--host", "north"]) == 0
    (tmp_path / "worker.toml").write_text(
        'id = "north"\nframework = "numpy"\ntoken_file = "tokens.json"\nledger = "ledger"\n'
        'cert = "certs/server.pem"\nkey = "certs/server.key"\ndata = ["ages.npy#ages:private="]\n'
        '[rules.study]\nuser = "ana"\nform = "ndarray[]"\ncomputed_from = ["#ages"]\nany_program = true\ncount = 5\n'
    )
    assert main(["token", "add", str(tmp_path / "tokens.json"), "--user", "ana"]) == 0
    with supervise(str(tmp_path / "worker.toml")) as worker:
        worker.wait_for("worker is ready")
        yield worker


@pytest.fixture
def gateway(worker: SupervisedWorker, tmp_path: Path) -> Iterator[Gateway]:
    (tmp_path / "gateway").mkdir()
    gateway = Gateway(tmp_path / "gateway", worker.port)
    yield gateway
    gateway.close()


def test_a_study_goes_through_a_tunnel_and_its_session_resumes_after_a_cut(
    gateway: Gateway, tmp_path: Path, capsys: Any
) -> None:
    assert main(["token", "add", str(tmp_path / "tokens.json"), "--user", "ana"]) == 0
    token = capsys.readouterr().out.split()[-1]
    options: Any = {"token": token, "ca": tmp_path / "certs" / "ca.pem"}
    gateway.open_tunnel()
    with sy.load_backend("numpy")(np):
        with pytest.raises(AuthenticationError, match="certificate"):
            sy.connect(f"wss://127.0.0.1:{gateway.port}", **options)  # The gateway is not the worker.
        north = sy.connect(f"wss://127.0.0.1:{gateway.port}", name="north", **options)
        (ages,) = north.search("#ages")
        rounds = [ages.mean().get(reason="round 1")]
        centered = ages - 40.0

        gateway.cut()
        gateway.open_tunnel()

        rounds.append((centered * centered).mean().get(reason="round 2"))  # The pointer from before is still valid.
        assert [float(value) for value in rounds] == [40.0, pytest.approx(200 / 3)]
        with pytest.raises(GetNotPermittedError):
            ages.get()
        north.close()
