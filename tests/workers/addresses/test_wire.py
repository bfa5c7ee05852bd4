"""Pipelining: the client predicts results and gradients instead of waiting, over a counting transport."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import dropout  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import syft_core as sy  # noqa: E402
from syft_core.exceptions import ObjectNotFoundError, OperationNotAllowedError, SerdeError  # noqa: E402
from syft_core.messages import Fetch  # noqa: E402
from syft_core.serde import Limits  # noqa: E402
from syft_core.workers.addresses import wire  # noqa: E402
from syft_core.workers.addresses.wire import WINDOW, WireLocation  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402

from ...syft_torch.remote.architectures import ARCHITECTURES, Architecture, differences, twins  # noqa: E402


class CountingLocation(WireLocation):
    """Delivers batches to a worker of this process, which answers only when the client waits."""

    def __init__(self, client: Any, worker: Any) -> None:
        super().__init__(client, worker.id)
        self.worker = worker
        self.waiting: deque[Any] = deque()
        self.batches = 0
        self.events: list[str] = []

    def send_frames(self, sent: Sequence[Any]) -> None:
        self.batches += 1
        self.events.append(f"send to {self.id}")
        self.waiting.append([bytes(frame) for frame in sent])

    def receive_frames(self, wait: bool) -> Sequence[Any] | None:
        if not wait:
            return None
        self.events.append(f"wait for {self.id}")
        return self.worker.deliver(self.waiting.popleft(), self.client.peer)


@pytest.fixture
def hook() -> Any:
    from syft_torch.hook import TorchHook  # noqa: PLC0415

    with TorchHook(torch) as hook:
        hook.attributes.warm_up()
        yield hook


@pytest.fixture(autouse=True)
def _independent_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LEAD", float("inf"))


@pytest.fixture
def far(hook: Any) -> CountingLocation:
    return connect(hook, "far")


def connect(hook: Any, id: str) -> CountingLocation:
    worker = VirtualWorker(hook, id=id, auto_add=False)
    location = CountingLocation(hook.local_worker, worker)
    hook.local_worker.add_worker(location)
    return location


OPTIMIZERS = {"SGD": torch.optim.SGD, "AdamW": torch.optim.AdamW}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name != "residual in place"])  # It waits for forms.
def test_an_epoch_that_fetches_its_loss_at_the_end_waits_once(far: CountingLocation, name: str, optimizer: str) -> None:
    architecture = ARCHITECTURES[name]
    local, remote = twins(architecture.make)
    x, y = architecture.data()
    expected = train(architecture, local, optimizer, x, y)
    remote.send(far)
    x, y = x.send(far), y.send(far)

    loss = train(architecture, remote, optimizer, x, y)

    assert far.waits == 0
    assert loss.get().equal(expected)
    assert far.waits == 1
    assert differences(remote.get(), local) == []


def train(architecture: Architecture, model: Any, optimizer: str, x: Any, y: Any) -> Any:
    chosen = OPTIMIZERS[optimizer](model.parameters(), lr=0.01)
    torch.manual_seed(3)
    for _ in range(3):
        chosen.zero_grad()
        loss = architecture.loss(model(x), y)
        loss.backward()
        chosen.step()
    return loss.detach()


def test_commands_are_sent_together(far: CountingLocation) -> None:
    x = torch.zeros(3).send(far)

    for _ in range(320):
        x = x + 1

    assert far.batches < 20
    assert x.get().tolist() == [320.0] * 3


def test_a_flush_does_not_wait_for_the_release_of_dropped_objects(far: CountingLocation) -> None:
    x = torch.zeros(3).send(far)
    far.flush()
    far.events = []
    y = x + 1
    del x
    far.flush()
    assert far.events == ["send to far", "wait for far", "send to far"]
    assert y.get().tolist() == [1.0] * 3
    assert far.worker.objects_count == 0


def test_everything_is_requested_before_the_first_wait(hook: Any, far: CountingLocation) -> None:
    away = connect(hook, "away")
    models = [torch.nn.Linear(2, 1).send(location) for location in (far, away)]
    ones = [torch.ones(1).send(location) for location in (far, away)]
    losses = [one * 2 for one in ones]
    for location in (far, away):
        location.flush()
    events = far.events = away.events = []

    sy.get_all(*models, *losses)

    assert events == ["send to far", "send to away"] * 2 + ["wait for far", "wait for away"] * 2


def test_more_fetches_than_the_window_takes_are_answered(far: CountingLocation) -> None:
    x = torch.zeros(1).send(far)

    fetched = sy.get_all(*[x + number for number in range(3 * WINDOW)])

    assert [int(value) for value in fetched] == list(range(3 * WINDOW))


def test_an_error_of_an_earlier_operation_is_raised_by_the_first_fetch_only(far: CountingLocation) -> None:
    singular, x, y = torch.ones(2, 2).send(far), torch.ones(2).send(far), torch.zeros(2).send(far)
    torch.linalg.inv(singular)

    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        sy.get_all(x, y)

    assert y.get().tolist() == [0.0, 0.0]
    assert x.get().tolist() == [1.0, 1.0]


def test_other_calls_may_wait_between_a_request_and_its_answer(far: CountingLocation) -> None:
    x, y = torch.ones(2).send(far), torch.zeros(2).send(far)

    answer = far.submit(Fetch(x.id_at_location))

    assert y.get().tolist() == [0.0, 0.0]
    waits = far.waits
    assert answer().tolist() == [1.0, 1.0]
    assert far.waits == waits


def test_a_trace_shows_fetches_that_wait_together(hook: Any, far: CountingLocation) -> None:
    x, y = torch.ones(2).send(far), torch.zeros(3).send(connect(hook, "away"))

    with sy.trace() as trace:
        sy.get_all(x, y)

    assert [(event.receiver, event.form) for event in trace.events] == [("far", "Tensor[2]"), ("away", "Tensor[3]")]


def test_a_full_window_waits_for_a_reply_and_loses_nothing(far: CountingLocation) -> None:
    x = torch.zeros(1).send(far)

    for _ in range(40 * WINDOW):
        x += 1

    assert len(far.waiting) <= WINDOW + 1
    assert x.get().tolist() == [40.0 * WINDOW]


def test_the_first_error_names_the_operation_and_the_line_that_issued_it(far: CountingLocation) -> None:
    matrix = torch.ones(2, 2).send(far)

    inverse = torch.linalg.inv(matrix)  # here
    total = inverse.sum() + 1
    with pytest.raises(torch.linalg.LinAlgError, match="singular") as caught:
        total.get()

    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "# here" in text)
    notes = "\n".join(caught.value.__notes__)
    assert f"torch.linalg.inv was issued by {__file__}:{line}" in notes
    assert "on worker 'far'" in notes
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        inverse.get()
    assert matrix.get().tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_nothing_is_executed_between_a_failure_and_the_moment_that_it_is_raised(far: CountingLocation) -> None:
    total, index = torch.zeros(1).send(far), torch.tensor([7]).send(far)
    far.flush()

    torch.ones(2).send(far).index_select(0, index)
    total += 1
    torch.ones(1).tag("#late").publish(far)
    with pytest.raises(IndexError, match="out of range"):
        far.flush()

    assert total.get().tolist() == [0.0]
    assert far.client.request_search("#late", far) == []


def test_using_a_released_object_raises_its_own_error(far: CountingLocation) -> None:
    x = torch.ones(1).send(far)
    far.flush()
    far.worker.clear_objects()

    x + 1
    with pytest.raises(ObjectNotFoundError, match="the worker was cleared"):
        far.flush()


def test_gradients_of_two_losses_are_distinguished(far: CountingLocation) -> None:
    a, b = (torch.ones(2, requires_grad=True).send(far) for _ in range(2))
    before = far.waits

    (a * 2).sum().backward()
    assert (a.grad is None, b.grad is None) == (False, True)
    (a * b).sum().backward()
    assert b.grad is not None
    a.grad = None
    assert (a.grad is None, b.grad is None) == (True, False)
    (a * 3).sum().backward(inputs=[a])
    torch.autograd.backward([(b * 3).sum()])

    assert far.waits == before
    assert (a.grad.get().tolist(), b.grad.get().tolist()) == ([3.0, 3.0], [4.0, 4.0])


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@pytest.mark.parametrize("way", ["second pointer", "found", "retained", "sparse", "graph"])
def test_gradients_that_cannot_be_predicted_are_requested(far: CountingLocation, way: str) -> None:
    w = torch.ones(3, 2, requires_grad=True).send(far)
    if way == "second pointer":
        second = type(w)(w.child.clone())
        w.sum().backward()
        assert second.grad.get().tolist() == [[1.0, 1.0]] * 3
    elif way == "found":
        w.tag("#w")
        (second,) = far.client.request_search("#w", far)
        w.sum().backward()
        assert second.grad.get().tolist() == [[1.0, 1.0]] * 3
    elif way == "retained":
        inner = w * 2
        inner.retain_grad()
        inner.sum().backward()
        assert inner.grad.get().tolist() == [[1.0, 1.0]] * 3
    elif way == "sparse":
        torch.nn.functional.embedding(torch.tensor([0]).send(far), w, sparse=True).sum().backward()
        assert w.grad.is_sparse
    else:
        (w * w).sum().backward(create_graph=True)
        assert w.grad.requires_grad


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (Cube.apply(Cube.apply(x).sin()) + x).sum(),
        lambda x: (checkpoint(lambda z: dropout(z.sin(), 0.5, training=False), x * 2, use_reentrant=True) + x).sum(),
        lambda x: (checkpoint(lambda z: z.sin() * z, x * 2, use_reentrant=False) + x).sum(),
    ],
)
def test_custom_autograd_functions_are_part_of_a_remote_graph(far: CountingLocation, program: Any) -> None:
    x = torch.tensor([0.3, -1.2, 0.7], requires_grad=True)
    remote = x.send(far)

    program(x).backward()
    program(remote).backward()

    assert torch.equal(remote.grad.copy().get(), x.grad)


def test_a_checkpoint_does_not_draw_random_numbers_twice(far: CountingLocation) -> None:
    x = torch.ones(100, requires_grad=True).send(far)

    with pytest.raises(OperationNotAllowedError, match="use_reentrant=False"):
        checkpoint(lambda z: dropout(z * 1, 0.5), x, use_reentrant=True)

    result = checkpoint(lambda z: dropout(z * 1, 0.5), x, use_reentrant=False)
    result.sum().backward()
    assert torch.equal(result.get(), x.grad.copy().get())


def test_tensors_are_created_remotely_without_waiting(far: CountingLocation) -> None:
    x = torch.ones(3).send(far)

    with far:
        result = x + torch.arange(3, device=x.device) + torch.zeros(3, device="cpu")

    assert far.waits == 0
    assert result.get().tolist() == [1, 2, 3]


def test_an_argument_that_cannot_be_sent_is_refused_and_nothing_else_is_lost(far: CountingLocation) -> None:
    x = torch.tensor([1.0, 2.0]).send(far)
    y = x + 1
    y += 1

    with pytest.raises(SerdeError, match="it has no codec"):
        x[object()]

    assert y.get().tolist() == [3.0, 4.0]
    assert x.get().tolist() == [1.0, 2.0]


def test_a_second_batch_is_sent_soon_and_further_commands_are_buffered(
    far: CountingLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.ones(2).send(far)
    far.flush()
    monkeypatch.setattr(wire, "LEAD", 0.0)
    before = far.batches

    for _ in range(10):
        x += 1

    assert far.batches == before + 2  # The worker has one when it has finished the other.
    assert x.get().tolist() == [11, 11]


def test_a_told_command_that_is_too_large_is_refused_and_the_others_are_executed(far: CountingLocation) -> None:
    x = torch.tensor([1.0, 2.0]).send(far)
    x += 1
    x.describe("x" * Limits().max_structure)
    x += 1

    with pytest.raises(SerdeError, match="bytes of structure"):
        far.flush()

    assert x.get().tolist() == [3.0, 4.0]


def test_a_broken_location_does_not_disturb_a_call_that_waits_for_another(hook: Any, far: CountingLocation) -> None:
    broken = CountingLocation(hook.local_worker, VirtualWorker(hook, id="broken", auto_add=False))
    hook.local_worker.add_worker(broken)
    x, y = torch.ones(2).send(far), torch.ones(2).send(broken)
    y += 1
    broken.send_frames = lambda _sent: (_ for _ in ()).throw(ConnectionError("the line is cut"))  # type: ignore[method-assign]

    assert x.get().tolist() == [1.0, 1.0]
    with pytest.raises(ConnectionError, match="the line is cut"):
        broken.flush()
