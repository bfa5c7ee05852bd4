"""NumpyHook: chains on numpy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from syft_core.hook.dispatch import frameworks
from syft_core.hook.hook import FrameworkHook, Patches
from syft_core.serde import codecs
from syft_core.tensors.abstract import AbstractTensor
from syft_core.values import Function, Tensor
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.virtual import VirtualWorker
from syft_numpy import hook_args, serde  # noqa: F401  # they register types
from syft_numpy.attributes import NumpyAttributes
from syft_numpy.files import READERS
from syft_numpy.native import SyftArray
from syft_numpy.values import Array
from syft_numpy.wrapper import Wrapper


class NumpyHook(FrameworkHook):
    """Let chains of syft tensors go wherever a numpy array goes.

    numpy itself is not changed: its protocols find the wrapper of a chain. Since ``ndarray`` cannot be extended, the
    hook creates arrays of a subclass that can be sent and tagged, with functions named as in numpy:

    >>> import numpy as np
    >>> with NumpyHook(np) as hook:
    ...     bob = hook.worker_type(hook, id="bob")
    ...     x = hook.arange(3).tag("#x").send(bob)
    ...     np.sum(x * 2).get()
    array(6)

    The options are those of ``FrameworkHook``.
    """

    name = "numpy"
    worker_type = VirtualWorker
    local_worker: BaseWorker
    readers = READERS
    creators: ClassVar[frozenset[str]] = frozenset(
        {"array", "asarray", "arange", "empty", "eye", "full", "identity", "linspace", "ones", "zeros"}
    )
    """The functions of numpy that the hook has too; its own return a ``SyftArray``."""

    def __init__(
        self,
        numpy: ModuleType,
        local_worker: BaseWorker | None = None,
        is_client: bool = True,
        verbose: bool = True,
    ) -> None:
        super().__init__(numpy, local_worker, is_client, verbose)
        self.numpy = numpy

    def __getattr__(self, name: str) -> Any:
        if name in self.creators:
            return partial(_create, getattr(np, name))
        raise AttributeError(
            f"cannot create an array with {name!r}: NumpyHook has {', '.join(sorted(self.creators))}; "
            f"for anything else, write `hook.array(numpy.{name}(...))`"
        )

    def _make_attributes(self) -> NumpyAttributes:
        return _attributes()

    def _install(self, patches: Patches) -> None:
        Wrapper.attach(self.attributes)
        patches.set(AbstractTensor, "__array_ufunc__", Wrapper.__array_ufunc__)
        patches.set(AbstractTensor, "__array_function__", Wrapper.__array_function__)

    @classmethod
    def create_shape(cls, shape_dims: Any) -> tuple[int, ...]:
        """Return ``shape_dims`` as a tuple."""
        return tuple(shape_dims)

    @classmethod
    def create_wrapper(cls, wrapper_type: object = None) -> Tensor:
        """Return an empty array of the given dtype; None and ``numpy.ndarray`` mean the default one."""
        if wrapper_type is None or wrapper_type is np.ndarray:
            return np.empty(0)
        try:
            return np.empty(0, dtype=wrapper_type)
        except TypeError as error:
            raise ValueError(
                f"cannot create a wrapper of type {wrapper_type!r}: give a numpy dtype, numpy.ndarray or None"
            ) from error

    @classmethod
    def create_tensor(cls, data: object) -> Array:
        """Return a plain array with the values of a nested list."""
        return np.array(data)

    @classmethod
    def create_zeros(cls, *shape: int, dtype: Any = None, **kwargs: Any) -> Array:
        """Return an array of zeros."""
        return np.zeros(shape, dtype=dtype, **kwargs)

    def create_table(self, columns: Sequence[Any]) -> Array:
        """Return an array with these columns."""
        return np.stack(columns, axis=1)

    def make_taggable(self, tensor: Tensor) -> SyftArray:
        """Return an array as one that can be tagged; the memory is the same."""
        taggable: SyftArray = tensor.view(SyftArray)
        return taggable


def _create(function: Function, *args: Any, owner: Any = None, id: Any = None, **kwargs: Any) -> SyftArray:
    array: SyftArray = function(*args, **kwargs).view(SyftArray)
    if id is not None:
        array.id = id
    if owner is not None:
        array.owner = owner
        if not owner.is_client_worker:
            owner.register_obj(array)
    return array


serde.register_codecs(codecs)


@cache
def _attributes() -> NumpyAttributes:
    attributes = NumpyAttributes(np)
    frameworks.update({np.ndarray: attributes, np.generic: attributes})
    return attributes
