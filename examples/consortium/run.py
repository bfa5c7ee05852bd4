"""Serve the three workers of the study on this machine until Ctrl-C; make what their owners have before the first time.

python examples/consortium/run.py study
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
PORTS = {"north": 8777, "east": 8778, "south": 8779}


def main(study: Path) -> int:
    """Make the study, start a worker for each owner, and stop all of them at the end."""
    scripts = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"  # The command `syft-core`.
    subprocess.run(["sh", str(HERE / "setup.sh"), str(study)], check=True, env={**os.environ, "PATH": scripts})
    command = shutil.which("syft-core", path=scripts)
    workers = [subprocess.Popen([command, "worker", str(study / name / "worker.toml")]) for name in PORTS]
    try:
        while not all(map(is_served, PORTS.values())):
            if any(worker.poll() is not None for worker in workers):
                return 1
            time.sleep(0.2)
        print("three workers are served; open scientist.ipynb. The pages of the owners, with their tokens:", flush=True)
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


def is_served(port: int) -> bool:
    """Return whether a worker answers; who it is, its clients verify by its certificate."""
    context = __import__("ssl")._create_unverified_context()
    try:
        return urllib.request.urlopen(f"https://127.0.0.1:{port}/health", timeout=2, context=context).status == 200
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "study")))
