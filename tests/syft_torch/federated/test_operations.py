"""What arranging data and statistics have in common: quotas, lineage, and the data that they take."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError, IdNotUniqueError  # noqa: E402
from syft_core.messages import FetchAll  # noqa: E402
from syft_core.pointers.object_pointer import new_id  # noqa: E402
from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.arranging import Arrange  # noqa: E402
from syft_torch.federated.statistics import Summarize  # noqa: E402
from syft_worker.allowances import Allowance  # noqa: E402
from syft_worker.errors import QuotaExceededError  # noqa: E402
from syft_worker.quotas import QuotaGuard  # noqa: E402


def halve(*pointers: Any) -> Arrange:
    return Arrange(pointers, "half", {"test_size": 0.5, "is_test": True}, new_id())


def summarize(*pointers: Any) -> Summarize:
    return Summarize(pointers, "moments", new_id())


MESSAGES = pytest.mark.parametrize("make", [halve, summarize])


@pytest.fixture
def data(hook: Any, bob: Any) -> Any:
    hook.local_worker.user = "eve"
    bob.load_data([torch.ones(1000, 4).private_tensor(["noor"]).tag("#x")])
    return bob.search("#x")[0].child


@MESSAGES
@pytest.mark.parametrize("allowance", [Allowance(objects=0), Allowance(bytes=1000)], ids=["objects", "bytes"])
def test_a_quota_is_kept(bob: Any, data: Any, make: Any, allowance: Allowance) -> None:
    bob.guard = QuotaGuard(bob, {"eve": allowance})

    with pytest.raises(QuotaExceededError):
        data._location.ask(make(data))


@MESSAGES
def test_results_of_private_data_stay_and_name_their_sources(bob: Any, data: Any, make: Any) -> None:
    message = make(data)

    data._location.ask(message)

    entry, source = bob.object_store.entry(message.result), bob.object_store.entry(data.id_at_location)
    assert (entry.access, entry.sources) == (source.access, source.sources)
    with pytest.raises(GetNotPermittedError):
        data._location.ask(FetchAll((message.result,)))


@MESSAGES
def test_data_that_is_not_a_plain_dense_tensor_is_refused(bob: Any, data: Any, make: Any) -> None:
    sparse = torch.eye(3).to_sparse().send(bob).child
    layered = torch.ones(3).fix_precision().send(bob).child

    for pointer in (sparse, layered):
        with pytest.raises(fl.FederatedError, match="its data is not a plain, dense tensor"):
            data._location.ask(make(pointer))


def test_parts_of_other_lengths_are_refused(bob: Any, data: Any) -> None:
    other = torch.ones(3).send(bob).child

    with pytest.raises(fl.FederatedError, match="the parts of its data differ in length"):
        data._location.ask(halve(data, other))


@MESSAGES
def test_an_id_that_is_taken_is_refused(bob: Any, data: Any, make: Any) -> None:
    message = make(data)
    data._location.ask(message)

    with pytest.raises(IdNotUniqueError):
        data._location.ask(message)
