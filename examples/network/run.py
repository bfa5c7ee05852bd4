"""Two hospitals and a data scientist, each in a process of its own: train, release, and stop."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
TOKENS = {"USER_TOKEN": secrets.token_urlsafe(32), "OWNER_TOKEN": secrets.token_urlsafe(32)}


def start(script, *args):
    """Start a script of this folder, with pipes to its input and its output; a data scientist gets no owner's token."""
    tokens = dict(TOKENS) if script == "hospital.py" else {"USER_TOKEN": TOKENS["USER_TOKEN"]}
    command = [sys.executable, str(FOLDER / script), *args]
    environment = {**os.environ, **tokens}
    return subprocess.Popen(  # noqa: S603  # a script of this folder
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment
    )


hospitals = [start("hospital.py", name, str(seed)) for name, seed in (("st-mary", 1), ("st-john", 2))]
processes = list(hospitals)
try:
    ports = []
    for hospital in hospitals:
        port, page = hospital.stdout.readline().split()
        ports.append(port)
        print(f"a hospital listens on port {port}; its page is {page}")
    scientist = start("scientist.py", *ports)
    processes.append(scientist)
    print(scientist.communicate(timeout=120)[0])
    for hospital in hospitals:  # The end of its input tells a hospital to stop.
        print(hospital.communicate(timeout=30)[0])
finally:
    for process in processes:
        process.kill()
codes = [process.wait() for process in processes]
assert codes == [0, 0, 0], codes
print("all three have stopped")
