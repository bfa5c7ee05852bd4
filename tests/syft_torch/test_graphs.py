"""What graphs keep in memory is found, also after it was changed, until it is freed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from syft_torch.graphs import find_saved  # noqa: E402  # torch may be missing


def test_what_a_graph_has_saved_is_found_once() -> None:
    x = torch.ones(10, requires_grad=True)
    y = x.exp()

    assert find_saved([y * y, y]) == {y.untyped_storage()._cdata: 40}


def test_what_was_changed_since_is_found() -> None:
    y = torch.ones(10, requires_grad=True).exp()
    storage = y.untyped_storage()._cdata

    assert storage in find_saved([y.add_(1)])


def test_what_a_backward_pass_has_freed_is_not_found() -> None:
    y = torch.ones(10, requires_grad=True).exp()
    y.sum().backward()

    assert find_saved([y]) == {}


def test_a_graph_of_many_steps_is_followed() -> None:
    y = torch.ones(10, requires_grad=True)
    for _ in range(3000):
        y = y.exp().clamp(0, 1)

    assert sum(find_saved([y]).values()) >= 3000 * 40
