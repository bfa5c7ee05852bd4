from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.hook.hook import current_worker  # noqa: E402  # torch may be missing
from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.clients import make_clients  # noqa: E402
from syft_torch.federated.forms import DataForms  # noqa: E402
from syft_torch.federated.loops import Settings  # noqa: E402

from .trainers import make_data, make_samples  # noqa: E402


def test_the_lengths_of_batches_are_those_of_all_workers(hook: Any) -> None:
    forms = DataForms(make_clients(make_data(hook, (40, 33, 40))))

    assert forms.counts == {40, 33}
    assert [tuple(part.shape[1:]) for part in forms.parts] == [(4,), ()]
    assert forms.find_lengths(Settings(batch_size=16)) == [17, 16, 8]
    assert forms.find_lengths(Settings(batch_size=16, drop_last=True)) == [16]
    assert forms.find_lengths(Settings(batch_size=None)) == [40, 33]


def test_new_numbers_of_samples_are_read_again(hook: Any) -> None:
    clients = make_clients(make_data(hook, (40, 33)))
    forms = DataForms(clients)
    clients.at(0).samples = 21

    assert forms.refresh()
    assert forms.counts == {21, 33}


def test_the_first_client_of_a_population_is_an_example_of_all(hook: Any) -> None:
    assert current_worker() is hook.local_worker
    forms = DataForms(make_clients(fl.Population(10**6, lambda number: make_samples(20 + number))))

    assert forms.counts == {20}
    assert not forms.refresh()


def test_data_of_other_forms_is_refused(hook: Any, bob: Any) -> None:
    data = fl.FederatedDataset([*make_data(hook, (40,)), fl.BaseDataset(torch.ones(3, 5), torch.zeros(3)).send(bob)])

    with pytest.raises(fl.FederatedError, match=r"worker 'bob' has float32\[n, 5\], float32\[n\], and worker 'w0' has"):
        DataForms(make_clients(data))
