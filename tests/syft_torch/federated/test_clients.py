from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.clients import Clients, PopulationClient, PopulationClients, make_clients, point_to  # noqa: E402


def make_population(size: int = 3) -> Any:
    return fl.Population(size, lambda number: fl.BaseDataset(torch.full((2, 1), float(number)), torch.zeros(2)))


@pytest.fixture
def data(bob: Any, alice: Any) -> Any:
    datasets = [fl.BaseDataset(torch.ones(count, 1), torch.zeros(count)) for count in (3, 5)]
    return fl.FederatedDataset([datasets[0].send(bob), datasets[1].send(alice)])


def test_each_worker_of_a_dataset_is_a_client(data: Any) -> None:
    clients = make_clients(data)

    assert type(clients) is Clients
    assert list(clients) == ["bob", "alice"]
    assert clients.at(1) is clients["alice"]
    assert clients.are_local
    with pytest.raises(KeyError):
        clients["carol"]


def test_a_client_knows_how_many_samples_it_has(data: Any) -> None:
    client = make_clients(data)["alice"]

    client.describe()

    assert client.samples == 5
    assert client.is_local


def test_the_clients_of_a_population_are_made_when_they_are_asked_for(hook: Any) -> None:
    clients = make_clients(make_population())

    assert type(clients) is PopulationClients
    assert (len(clients), list(clients)) == (3, ["client-0", "client-1", "client-2"])
    assert isinstance(clients["client-2"], PopulationClient)
    assert clients["client-2"] is not clients["client-2"]


@pytest.mark.parametrize("id", ["client-3", "client--1", "client-x", "bob", ""])
def test_a_client_that_a_population_does_not_have_is_unknown(hook: Any, id: str) -> None:
    with pytest.raises(KeyError):
        make_clients(make_population())[id]


def test_a_client_of_a_population_exists_while_it_is_open(hook: Any) -> None:
    client = make_clients(make_population()).at(2)

    with client.open() as opened:
        worker = opened.location.face
        assert opened.samples == 2
        assert worker.objects_count == 2
    assert worker.objects_count == 0


def test_data_that_a_worker_keeps_is_pointed_to_by_its_ids(hook: Any, bob: Any) -> None:
    x, y = torch.ones(4, 2).send(bob), torch.zeros(4).send(bob)

    dataset = point_to(hook.local_worker.location_of(bob), [x.id_at_location, y.id_at_location])
    assert len(dataset) == 4
    del dataset

    assert x.get().sum() == 8.0
    assert y.get().shape == (4,)
