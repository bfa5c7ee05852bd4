"""The files in deploy/, as far as this machine can try them."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

import syft_core as sy
from syft_core.cli import main
from syft_core.exceptions import GetNotPermittedError
from syft_worker.checks import find_problems
from syft_worker.config import read_config
from tests.waiting import wait_until

from ..network.processes import find_port, wait_for_port
from ..network.supervised import ROOT, supervise

DEPLOY = ROOT / "deploy"


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


# --- systemd


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="`apt-get install systemd` installs it")
@pytest.mark.parametrize("name", ["syft-worker.service", "syft-tunnel.service"])
def test_the_units_are_valid(tmp_path: Path, name: str) -> None:
    unit = tmp_path / name
    text = (DEPLOY / name).read_text().replace("/opt/syft/bin/syft-core", sys.executable)
    unit.write_text(text.replace("/usr/bin/ssh", sys.executable))

    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False, timeout=120)

    assert [line for line in done.stderr.splitlines() if unit.name in line] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="`apt-get install systemd` installs it")
@pytest.mark.parametrize("name", ["syft-worker.service", "syft-tunnel.service"])
def test_the_units_have_few_rights(name: str) -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=30", DEPLOY / name]

    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode == 0, done.stdout[-2000:]  # At most 3 of 10 points of exposure.


@pytest.mark.skipif(shutil.which("wg-quick") is None, reason="`apt-get install wireguard-tools` installs it")
@pytest.mark.parametrize("name", ["wg-worker.conf", "wg-gateway.conf"])
def test_the_files_of_wireguard_are_valid(tmp_path: Path, name: str) -> None:
    shutil.copy(DEPLOY / name, tmp_path)
    (tmp_path / name).chmod(0o600)

    done = subprocess.run(
        ["wg-quick", "strip", tmp_path / name], capture_output=True, text=True, check=True, timeout=120
    )

    assert done.stderr == ""
    assert "AllowedIPs = 10.77.0." in done.stdout


# --- nginx


@contextmanager
def run_nginx(folder: Path, ports: dict[str, int]) -> Iterator[None]:
    """Run deploy/nginx.conf with the ports of a test; certificates are in ``folder``/certs."""
    text = (DEPLOY / "nginx.conf").read_text().replace("/etc/syft", str(folder))
    for old, new in ports.items():
        assert old in text
        text = text.replace(old, old.replace(old.split(":")[-1].split()[-1].rstrip(";"), str(new)))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    own = "".join([f"{kind}_temp_path {folder}/{kind}; " for kind in kinds])
    (folder / "nginx.conf").write_text(text.replace("http {", f"http {{ access_log off; {own}", 1))
    options = f"daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;"
    process = subprocess.Popen([str(NGINX), "-p", folder, "-c", folder / "nginx.conf", "-g", options])
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@pytest.mark.skipif(NGINX is None, reason="`apt-get install nginx-light` installs it")
def test_a_worker_and_its_page_are_used_through_the_proxy(tmp_path: Path, capsys: Any) -> None:
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "ages.npy", np.array([30.0, 40.0]))
    assert main(["certs", str(tmp_path / "certs"), "--host", "hospital.example"]) == 0
    secrets = {}
    for user, *more in (("ana",), ("noor", "--admin")):
        capsys.readouterr()
        assert main(["token", "add", str(tmp_path / "tokens.json"), "--user", user, *more, "--json"]) == 0
        secrets[user] = json.loads(capsys.readouterr().out)["secret"]
    ca, page_port = tmp_path / "certs" / "ca.pem", find_port()
    (tmp_path / "worker.toml").write_text(
        f'id = "north"\nframework = "numpy"\ntoken_file = "tokens.json"\npage_port = {page_port}\n'
        'page_hosts = ["hospital.example"]\ntrusted_proxy = ["127.0.0.1"]\ndata = ["ages.npy#ages:private="]\n'
    )
    with supervise(str(tmp_path / "worker.toml")) as worker, sy.load_backend("numpy")(np):
        worker.wait_for("worker is ready")
        front, gate = find_port(), find_port()
        ports = {"listen 443": front, "listen 8443": gate}
        ports |= {"http://127.0.0.1:8778": page_port, "http://127.0.0.1:8777": worker.port}
        with run_nginx(tmp_path, ports):
            wait_for_port(gate)
            north = sy.connect(f"wss://127.0.0.1:{gate}", name="hospital.example", ca=ca, token=secrets["ana"])
            mean = north.search("#ages")[0].mean()
            request = mean.request("table 1")
            cookie = sign_in(front, ca, secrets["noor"])
            assert "Secure" in cookie
            shown = ask(front, ca, "GET", "/requests", {"Authorization": f"Bearer {secrets['noor']}"})
            (listed,) = json.loads(shown.text)
            fields = {"digest": listed["digest"]}
            headers = {"Authorization": f"Bearer {secrets['noor']}"}
            assert ask(front, ca, "POST", f"/requests/{request.id}/approve", headers, fields).status == 303
            assert float(mean.get()) == 35.0
            north.close()


class Answer(NamedTuple):
    status: int
    cookie: str
    text: str


def sign_in(port: int, ca: Path, secret: str) -> str:
    """Sign in at the page as a browser does, and return the cookie."""
    first = ask(port, ca, "GET", "/login")
    (csrf,) = re.findall(r'name="csrf" value="([^"]+)"', first.text)
    headers = {"Cookie": first.cookie.partition(";")[0], "Origin": "https://hospital.example"}
    answer = ask(port, ca, "POST", "/login", headers, {"csrf": csrf, "token": secret})
    assert answer.status == 303
    return answer.cookie


def ask(
    port: int, ca: Path, method: str, path: str, headers: dict[str, str] | None = None, fields: Any = None
) -> Answer:
    """Make a request to hospital.example, which is at a port of this machine."""
    context = ssl.create_default_context(cafile=str(ca))
    connection = http.client.HTTPConnection("hospital.example", timeout=60)
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        connection.sock = context.wrap_socket(sock, server_hostname="hospital.example")
        with closing(connection):
            body = None if fields is None else urlencode(fields)
            kind = {} if body is None else {"Content-Type": "application/x-www-form-urlencoded"}
            connection.request(method, path, body, {**kind, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, response.headers["Set-Cookie"] or "", response.read().decode())


# --- the image


def read_dockerfile() -> dict[str, list[str]]:
    """Return the arguments of each instruction."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        found.setdefault(name, []).append(rest.strip())
    return found


def test_the_image_runs_without_rights() -> None:
    text = (DEPLOY / "Dockerfile").read_text()

    assert text.index("USER syft") < text.index("ENTRYPOINT")
    assert "useradd --create-home --uid 10001 syft" in text


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that the steps of the Dockerfile were run in; there is no daemon that could build it."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("setuptools", minversion="77")
    if f"torch=={torch.__version__.partition('+')[0]}" not in (ROOT / "constraints.txt").read_text().splitlines():
        pytest.skip("the image has the torch of constraints.txt, and this is another one")
    folder = tmp_path_factory.mktemp("image")
    source = folder / "src"
    source.mkdir()
    for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines():
        if line.startswith("!"):
            found = ROOT / line[1:]
            ignored = shutil.ignore_patterns("__pycache__")
            if found.is_dir():
                shutil.copytree(found, source / found.name, ignore=ignored)
            else:
                shutil.copy(found, source / found.name)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "python"], check=True, timeout=120)
    (packages,) = (folder / "python").glob("lib/*/site-packages")
    (packages / "installed.pth").write_text(sysconfig.get_path("purelib"))  # What pip would download.
    write_program(
        folder / "root" / "pip", f'exec {folder}/python/bin/python -m pip "$@" --no-index --no-build-isolation'
    )
    for name in ("useradd", "install"):
        write_program(folder / "root" / name, f'echo {name} "$@" >> {folder}/as-root')
    (steps,) = read_dockerfile()["RUN"]
    paths = [folder / "root", folder / "python" / "bin", Path("/usr/bin"), Path("/bin")]
    env = {"PATH": ":".join(map(str, paths)), "HOME": str(folder)}
    subprocess.run(["sh", "-ec", steps.replace("/src", str(source))], check=True, env=env, cwd=folder, timeout=600)
    assert not source.exists()
    assert (folder / "as-root").read_text().splitlines() == [
        "useradd --create-home --uid 10001 syft",
        "install --directory --owner syft --mode 700 /study",
    ]
    return folder


@pytest.mark.slow
def test_the_steps_of_the_image_install_a_worker_whose_health_is_checked(image: Path, tmp_path: Path) -> None:
    assert main(["certs", str(tmp_path / "certs"), "--host", "north"]) == 0
    assert main(["token", "add", str(tmp_path / "tokens.json"), "--user", "ana"]) == 0
    port = find_port()
    (tmp_path / "worker.toml").write_text(
        f'host = "0.0.0.0"\nport = {port}\ntoken_file = "tokens.json"\n'
        'cert = "certs/server.pem"\nkey = "certs/server.key"\n'
    )
    instructions = read_dockerfile()
    command = [*json.loads(instructions["ENTRYPOINT"][0]), *json.loads(instructions["CMD"][0])]
    command = [word.replace("/home/syft", str(tmp_path)) for word in command]
    check = json.loads(instructions["HEALTHCHECK"][0].partition(" CMD ")[2])
    check = [word.replace(":8777", f":{port}") for word in check]
    env = {"PATH": f"{image / 'python' / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}

    def is_healthy() -> bool:
        program = image / "python" / "bin" / check[0]
        return (
            subprocess.run(
                [program, *check[1:]], env=env, check=False, stderr=subprocess.DEVNULL, timeout=120
            ).returncode
            == 0
        )

    assert not is_healthy()
    program = image / "python" / "bin" / command[0]
    worker = subprocess.Popen([program, *command[1:]], env=env, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: is_healthy() or worker.poll() is not None, seconds=120, pause=0.5)
        assert worker.poll() is None
    finally:
        worker.terminate()
        assert worker.wait(60) == 0


# --- compose


NAMES = ("north", "south", "west", "provider")


@pytest.mark.slow
def test_one_command_starts_three_workers_and_a_provider_that_compute_on_shares(tmp_path: Path) -> None:
    yaml, torch = pytest.importorskip("yaml"), pytest.importorskip("torch")
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert list(services) == ["setup", *NAMES]
    study = tmp_path / "study"
    write_program(tmp_path / "bin" / "syft-core", f'exec {shlex.quote(sys.executable)} -m syft_core "$@"')
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    setup = [
        word.replace("/study", str(study)) for word in services["setup"]["entrypoint"] if word != "/setup-study.sh"
    ]
    script = str(DEPLOY / "setup-study.sh")
    subprocess.run([setup[0], script, *setup[1:]], check=True, env=env, timeout=120)
    made = (study / "client" / "ca.pem").read_bytes()
    subprocess.run([setup[0], script, *setup[1:]], check=True, env=env, timeout=120)  # A second start changes nothing.
    assert (study / "client" / "ca.pem").read_bytes() == made
    ports = {name: find_port() for name in NAMES}
    for name in NAMES:  # Containers have addresses of their own; here they have ports.
        file = study / name / "worker.toml"
        text = file.read_text().replace("0.0.0.0", "127.0.0.1").replace("port = 8777", f"port = {ports[name]}", 1)
        text = text.replace("page_port = 8778", f"page_port = {find_port()}")
        for other in NAMES:
            text = text.replace(f'wss://{other}:8777"', f'wss://127.0.0.1:{ports[other]}"')
        file.write_text(text)
        assert find_problems(read_config(file), peers=False) == []
    with ExitStack() as stack:
        workers = []
        for name in NAMES:
            _, config, *options = [word.replace("/study", str(study)) for word in services[name]["command"]]
            workers.append(stack.enter_context(supervise(config, *options, "--port", str(ports[name]))))
        for worker in workers:
            worker.wait_for("worker is ready")
        stack.enter_context(sy.load_backend("torch")(torch))
        client = study / "client"
        *hospitals, provider = [
            sy.connect(
                f"wss://127.0.0.1:{ports[name]}",
                name=name,
                ca=client / "ca.pem",
                token=(client / f"{name}-ana.token").read_text().strip(),
            )
            for name in NAMES
        ]
        sums = [hospital.search("#patients")[0].sum(0) for hospital in hospitals]
        shared = [part.fix_prec().share(*hospitals, crypto_provider=provider) for part in sums]
        total = shared[0] + shared[1] + shared[2]
        with pytest.raises(GetNotPermittedError):
            total.get()
        requests = total.request("the sum")
        for name in NAMES[:3]:
            url, token = f"wss://127.0.0.1:{ports[name]}", client / f"{name}-owner.token"
            desk = ["--url", url, "--name", name, "--ca", str(client / "ca.pem"), "--token-from", str(token)]
            assert main(["requests", "approve", requests[name].id, *desk]) == 0
        age, dose = total.get().float_prec().tolist()
        assert dose == 2 * age + 150  # dose = 2 * age + 1 for each of the 150 patients
        for location in (*hospitals, provider):
            location.close()
