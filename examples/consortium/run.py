"""Serve the three workers of the study on this machine until Ctrl-C; before the first time, make what the owners have.

python examples/consortium/run.py study
"""

import os
import signal
import ssl
import subprocess
import sys
import sysconfig
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
PORTS = {"north": 8777, "east": 8778, "south": 8779}


def main(study):
    """Make the study, start a worker for each owner, and stop all of them at the end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    scripts = sysconfig.get_path("scripts")  # The folder of the command `syft-core`.
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["sh", HERE / "setup.sh", study], check=True, env=environment)  # noqa: S603, S607  # our own script
    workers = [
        subprocess.Popen([Path(scripts, "syft-core"), "worker", study / name / "worker.toml"])  # noqa: S603  # our own
        for name in PORTS
    ]
    try:
        while not all(is_served(port, study / "scientist" / f"{name}.pem") for name, port in PORTS.items()):
            if any(worker.poll() is not None for worker in workers):
                return 1
            time.sleep(0.2)
        print("three workers are served; open scientist.ipynb. The pages of the owners, and their tokens:", flush=True)
        for name, port in PORTS.items():
            print(f"  https://127.0.0.1:{port + 10}/  {study / name / 'owner.token'}", flush=True)
        for worker in workers:
            worker.wait()
    except KeyboardInterrupt:
        pass
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()
    return 0


def is_served(port, authority):
    """Return whether a worker answers that has a certificate of this authority."""
    context = ssl.create_default_context(cafile=authority)
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/health", timeout=2, context=context) as answer:
            return answer.status == 200
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "study").absolute()))
