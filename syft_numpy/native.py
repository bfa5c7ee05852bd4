"""SyftArray: an ordinary array that can be sent, tagged and made private."""

from __future__ import annotations

from typing import Any, Literal, NoReturn

import numpy as np

from syft_core.pointers.travel import Travelling
from syft_core.tensors.identity import Identified, keep_words
from syft_core.values import Kwargs
from syft_mpc.sharing import Sharing


class NumpyTensor(Sharing, Travelling, Identified):
    """The methods that this library adds to arrays and to wrappers."""

    dtype: Any

    def send_(self, *_workers: object, **_options: object) -> NoReturn:
        """Refuse: an array cannot turn into a pointer."""
        raise TypeError("cannot send an array in place: an array cannot turn into a pointer; write `x = x.send(bob)`")

    def get_(self, *_args: object, **_options: object) -> NoReturn:
        """Refuse: a pointer cannot turn into an array."""
        raise TypeError("cannot fetch an array in place: a pointer cannot turn into an array; write `x = p.get()`")

    def get_class_attributes(self) -> Kwargs:
        """Return the attributes of a wrapper of the same kind."""
        return {"type": self.dtype}


class SyftArray(NumpyTensor, np.ndarray[Any, np.dtype[Any]]):
    """An ``ndarray`` with ``send``, ``tag``, ``private_tensor`` and the like, since ``ndarray`` cannot be extended.

    Results of operations on it have these methods too, but an id and tags of their own. Workers keep plain arrays.
    """

    def copy(self, order: Literal["K", "A", "C", "F"] | None = "C") -> SyftArray:
        """Return an array with a copy of the data and a new id."""
        made: SyftArray = keep_words(self, super().copy(order))
        return made
