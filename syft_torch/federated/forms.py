"""The form of the data of a run: the same on all workers, but for the number of samples."""

from __future__ import annotations

from collections.abc import Sequence

from syft_core.hook.forms import Form
from syft_core.peer import Id
from syft_core.values import Nested
from syft_torch.federated.clients import Clients, PopulationClients
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.loops import Settings


class DataForms:
    """The forms of the data, and clients' numbers of samples; the first client stands for all of a population."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self.parts: list[Form] = []
        self.counts: set[int] = set()
        first: Id = ""
        for client in [clients.at(0)] if isinstance(clients, PopulationClients) else clients.values():
            with client.open():
                for forms in client.forms or client.describe():
                    _require_known(client.id, forms)
                    if not self.parts:
                        first, self.parts = client.id, forms
                    elif list(map(row_form, forms)) != list(map(row_form, self.parts)):
                        raise FederatedError.form(client.id, _describe(forms), first, _describe(self.parts))
                if not client.samples:
                    raise FederatedError.operands(client.id, "it has no samples", "leave this worker out")
                self.counts.add(client.samples)

    def refresh(self) -> bool:
        """Read the numbers of samples again, and return True; those of a population are not known."""
        if isinstance(self._clients, PopulationClients):
            return False
        self.counts = {client.samples for client in self._clients.values() if client.samples}
        return True

    def find_lengths(self, settings: Settings) -> list[int]:
        """Return all lengths of batches that may occur; none if they are random, so that one recording serves all."""
        if settings.privacy is not None:
            return []
        found = {length for count in self.counts for length in settings.divide(count).lengths}
        return sorted(found, reverse=True)


def row_form(known: Form) -> tuple[Nested, Nested]:
    """Return the shape of one sample, and its dtype."""
    return tuple(known.shape or ())[1:], known.dtype


def _require_known(worker: Id, forms: Sequence[Form | None]) -> None:
    for known in forms:
        if known is None or known.shape is None or known.dtype is None or not len(known.shape):
            raise FederatedError.operands(worker, "a part of its data is not a tensor with rows", "store tensors")


def _describe(forms: Sequence[Form]) -> str:
    return ", ".join(
        [f"{str(known.dtype).rpartition('.')[2]}{['n', *(known.shape or ())[1:]]}".replace("'", "") for known in forms]
    )
