"""Remote: make tensors directly on a worker, ``worker.remote.<framework>.zeros(2, 3)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syft_core.hook.attributes import FrameworkAttributes
from syft_core.messages import Run
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import PointerTensor


class Remote:
    """The frameworks of a worker, by name."""

    def __init__(self, worker: Any, owner: Any) -> None:
        self._worker = worker
        self._owner = owner

    def __getattr__(self, framework: str) -> RemoteFramework:
        return RemoteFramework(self._worker, self._owner, self._owner.attributes_of(framework))


class RemoteFramework:
    """The functions of one framework that make tensors on a worker."""

    def __init__(self, worker: Any, owner: Any, attributes: FrameworkAttributes) -> None:
        self._worker = worker
        self._owner = owner
        self._attributes = attributes

    def __getattr__(self, name: str) -> Callable[..., Any]:
        creators = self._attributes.creators
        if name not in creators:
            raise AttributeError(
                f"cannot make a tensor on worker {self._worker.id!r} with {name!r}: {self._attributes.ALIAS} has "
                f"{', '.join(sorted(creators))} there; make it here and send it"
            )
        return lambda *args, **kwargs: self._create(creators[name].name, args, kwargs)

    def __dir__(self) -> list[str]:
        return sorted(self._attributes.creators)

    def _create(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        attributes = self._attributes
        reply = self._worker.ask(Run(attributes.ALIAS, op, args, kwargs, new_id()), self._owner)
        return attributes.wrapper(PointerTensor(self._worker, reply.id, attributes, owner=self._owner))
