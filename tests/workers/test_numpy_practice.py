"""Programs of practitioners give the same bits on pointers to arrays as locally, also on private data."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_core.exceptions import ValueRefusedError  # noqa: E402
from syft_core.hook.chain import plain_below  # noqa: E402

from .numpy_practice import PROGRAMS  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

REFUSED_ON_PRIVATE_DATA = {"lstsq", "polyfit", "masked_index", "histogram", "bincount", "windows"}


class Local:
    """Where a program gets its data."""

    bob: Any = None

    def send(self, x: Any) -> Any:
        return x

    def read(self, x: Any) -> Any:
        return np.array(x)


class Remote(Local):
    def __init__(self, bob: Any, hook: Any) -> None:
        self.bob, self.hook = bob, hook

    def send(self, x: Any) -> Any:
        return self.hook.asarray(x).send(self.bob)

    def read(self, x: Any) -> Any:
        return np.array(x.copy().get())


class Private(Remote):
    """The data is private, and the owner looks at the results."""

    def send(self, x: Any) -> Any:
        tag = f"#{self.bob.objects_count}"
        self.bob.load_data([self.hook.asarray(x).private_tensor([]).tag(tag)])
        return self.bob.search(tag)[-1].copy()

    def read(self, x: Any) -> Any:
        return np.array(plain_below(self.bob.get_obj(x.id_at_location)))


def are_same(expected: Any, found: Any) -> bool:
    return (expected.dtype, expected.shape, expected.tobytes()) == (found.dtype, found.shape, found.tobytes())


@pytest.mark.parametrize("place", [Remote, Private])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_same_bits_as_locally(name: str, place: Any, carol: Any, numpy_hook: Any) -> None:
    local = Local()
    expected = [local.read(result) for result in PROGRAMS[name](local)]
    there = place(carol, numpy_hook)
    if place is Private and name in REFUSED_ON_PRIVATE_DATA:
        with pytest.raises(ValueRefusedError, match="use `numpy"):
            PROGRAMS[name](there)
        return

    found = [there.read(result) for result in PROGRAMS[name](there)]

    assert all(map(are_same, expected, found))
