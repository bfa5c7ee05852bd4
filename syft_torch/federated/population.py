"""Population: many simulated clients, each of which exists only while it takes part in a round."""

from __future__ import annotations

from collections.abc import Callable

from syft_core.values import Nested
from syft_torch.federated.dataset import BaseDataset
from syft_torch.federated.errors import FederatedError


class Population:
    """Clients that are made when they are sampled, so that memory is bounded by the sample.

    Args:
        size: how many clients there are.
        load: a function of the number of a client, from 0, that returns its data: the inputs and the targets, or a
            ``BaseDataset``. It must return the same data each time.

    """

    def __init__(self, size: int, load: Callable[[int], Nested]) -> None:
        if type(size) is not int or size < 1:
            raise FederatedError.trainer(f"a population of {size!r} clients", "pass a positive number")
        self.size, self._load = size, load

    def load(self, number: int) -> BaseDataset:
        """Return the data of a client."""
        found = self._load(number)
        if isinstance(found, BaseDataset):
            return found
        if not isinstance(found, tuple | list) or len(found) < 2:
            raise FederatedError.trainer(
                f"`load({number})` of the population returns a {type(found).__name__}", "return inputs and targets"
            )
        *inputs, targets = found
        return BaseDataset(inputs[0] if len(inputs) == 1 else tuple(inputs), targets)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<Population of {self.size} clients>"
