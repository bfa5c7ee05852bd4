"""RemoteStorage: the known facts about the memory of a remote tensor."""

from __future__ import annotations

from typing import NoReturn

from syft_core.exceptions import ValueRefusedError
from syft_core.values import Tensor


class RemoteStorage:
    """The size of the memory of a remote tensor, which follows from its form; the memory itself is on its worker.

    Programs that measure models, such as ``torchinfo.summary``, ask every tensor for the size of its storage.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._size = int(tensor.nbytes)
        self._place = str(tensor.child._location.id)

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._size

    size = nbytes
    __len__ = nbytes

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._size

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ValueRefusedError.only_local(f"torch.UntypedStorage.{name}", self._place)
