"""A browser without scripts, which owners use in tests of the page."""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from syft_worker.page import Page

from ..network.served import Served

torch = pytest.importorskip("torch")


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: str


class Browser:
    """Keeps a cookie and sends forms, as far as the page needs it."""

    def __init__(self, page: Page, address: str = "127.0.0.1") -> None:
        self._page, self._address = page, address
        self.cookie = ""

    def request(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._page.port, timeout=20, source_address=(self._address, 0)
        )
        if method == "POST" and "Authorization" not in headers:
            headers.setdefault("Origin", f"http://127.0.0.1:{self._page.port}")
        if self.cookie:
            headers["Cookie"] = f'other="[1, 2"; {self.cookie}; last'
        with closing(connection):  # Also if the page does not answer.
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = Answer(response.status, dict(response.getheaders()), response.read().decode())
        if "Set-Cookie" in answer.headers:
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return answer

    def get(self, path: str, token: str | None = None) -> Answer:
        return self.request("GET", path, **({} if token is None else {"Authorization": f"Bearer {token}"}))

    def csrf(self, path: str) -> str:
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.get(path).body)
        assert found is not None
        return found[1]

    def review(self, path: str) -> dict[str, str]:
        """Return the hidden fields of the forms of a request."""
        return dict(re.findall(r'type="hidden" name="(\w+)" value="([0-9a-f]+)"', self.get(path).body))

    def post(self, path: str, **fields: str) -> Answer:
        return self.request("POST", path, urlencode(fields))

    def sign_in(self, token: str = "owner-secret") -> Answer:
        return self.post("/login", token=token, csrf=self.csrf("/login"))


def path_of(served: Served, place: int = 0) -> str:
    return f"/requests/{served.worker.requests[place].id}"


def ask_for_release(served: Served, reason: str = "for the paper") -> Any:
    served.worker.load_data([torch.tensor([86753.0]).private_tensor([]).tag("#ages")])
    bob = served.connect()
    pointer = bob.search("#ages")[0] * 2
    pointer.request(reason)
    return pointer
