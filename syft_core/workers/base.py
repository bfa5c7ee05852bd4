"""BaseWorker: who owns objects, and keeps them under their ids."""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import ObjectNotFoundError
from syft_core.ids import IdProvider


class BaseWorker:
    """Holds objects by id.

    A *client* worker keeps nothing by itself: what its user drops is gone, as in any Python program.
    """

    def __init__(
        self, hook: Any = None, id: int | str = 0, is_client_worker: bool = False, verbose: bool = False
    ) -> None:
        self.hook = hook
        self.id = id
        self.is_client_worker = is_client_worker
        self.verbose = verbose
        self._objects: dict[int | str | None, Any] = {}
        self._ids = IdProvider()

    def register_obj(self, obj: Any, obj_id: int | str | None = None) -> None:
        """Keep ``obj`` under ``obj_id`` or its own id, and make it this worker's."""
        known = getattr(obj, "_syft_id", None)
        if self._objects.get(known) is obj:
            del self._objects[known]
        if obj_id is None:
            obj_id = known if known is not None else self._ids.pop()
        if hasattr(type(obj), "_syft_id"):
            obj.id, obj.owner = obj_id, self
        self._objects[obj_id] = obj

    def de_register_obj(self, obj: Any) -> None:
        """Forget ``obj``; forgetting what is not here is harmless."""
        known = getattr(obj, "_syft_id", None)
        if known is None:
            known = next((key for key, stored in self._objects.items() if stored is obj), None)
        if self._objects.get(known) is obj:
            del self._objects[known]

    def get_obj(self, obj_id: int | str) -> Any:
        """Return the object kept under ``obj_id``."""
        if obj_id not in self._objects:
            raise ObjectNotFoundError.on(obj_id, self.id)
        return self._objects[obj_id]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} id:{self.id} #objects:{len(self._objects)}>"
