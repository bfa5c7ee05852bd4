"""A headless browser, driven by the JSON over HTTP of the W3C's WebDriver."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
).split()
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Chromium:
    """One window of the browser."""

    def __init__(self, port: int, flags: list[str]) -> None:
        self._port, self._path = port, "/session"
        options = {"binary": BROWSER, "args": flags}
        wanted = {"browserName": "chrome", "acceptInsecureCerts": True, "goog:chromeOptions": options}
        wanted["goog:loggingPrefs"] = {"browser": "ALL"}
        self._path += "/" + self.call("POST", "", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        self.call("POST", "/timeouts", {"implicit": 20_000})

    def call(self, method: str, path: str, body: Any = None) -> Any:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        sent = None if body is None else json.dumps(body)
        connection.request(method, self._path + path, sent, {"Content-Type": "application/json"})
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError(f"{value['error']}: {value['message']}")
        return value

    def open(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def resize(self, width: int, height: int) -> None:
        """Let pages see a screen of this size, also one that is smaller than a window can be."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})

    def find(self, selector: str) -> str:
        """Return an element, as soon as the page has it."""
        return str(self.call("POST", "/element", {"using": "css selector", "value": selector})[_ELEMENT])

    def click(self, selector: str) -> None:
        self.call("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def text(self, selector: str = "body") -> str:
        return str(self.call("GET", f"/element/{self.find(selector)}/text"))

    def run(self, script: str) -> Any:
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def run_async(self, script: str) -> Any:
        """Run a script whose last argument is the function that it calls with its result."""
        return self.call("POST", "/execute/async", {"script": script, "args": []})

    def press(self, key: str) -> None:
        """Press a key, as somebody does who has no mouse."""
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def take_picture(self) -> bytes:
        return base64.b64decode(self.call("GET", "/screenshot"))

    def log(self) -> list[str]:
        return [line["message"] for line in self.call("POST", "/se/log", {"type": "browser"})]


def start_driver(attempts: int = 5) -> tuple[subprocess.Popen[str], int]:
    """Start the program that drives a browser; return it and its port."""
    assert DRIVER is not None
    for _ in range(attempts):
        driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert driver.stdout is not None
        printed = []
        for line in driver.stdout:
            printed.append(line)
            if "started successfully on port" in line:
                return driver, int(line.rstrip().rstrip(".").rsplit(" ", 1)[1])
        driver.communicate(timeout=60)  # It ended before it was ready.
    raise AssertionError(f"the driver of the browser does not start: {''.join(printed)}")


@contextmanager
def open_browser(*flags: str) -> Iterator[Chromium]:
    """Start a browser with a profile of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        driver, port = start_driver()
        try:
            browser = Chromium(port, [*_FLAGS, f"--user-data-dir={Path(folder)}", *flags])
            try:
                yield browser
            finally:
                browser.call("DELETE", "")
        finally:
            driver.terminate()
            driver.communicate(timeout=30)
