"""Forms: inferred forms are correct, and only forms that cannot be inferred are requested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytest.importorskip("expecttest", reason="torch's own samples need it")

from syft_core.hook import forms  # noqa: E402

from ..surface.checks import tensors  # noqa: E402
from ..surface.torch_surface import TorchSurface  # noqa: E402
from ..workers.remote_surface import RemoteSurface, is_remote  # noqa: E402

F = torch.nn.functional
FIELDS = ("shape", "dtype", "device", "requires_grad", "is_leaf")


def facts(tensor: Any) -> list[Any]:
    return [getattr(tensor, name) for name in FIELDS]


def find_stored(head: Any) -> Any:
    """Return what a pointer points to, as its worker has it."""
    return head.location.get_obj(head.id_at_location)


# --- for every operation


@pytest.fixture
def surface() -> Iterator[Any]:
    made = TorchSurface()
    with made.attach_hook():
        yield made


@pytest.mark.filterwarnings("ignore")  # the samples use what torch deprecates
def test_the_inferred_form_is_correct_for_every_operation(surface: Any) -> None:
    remote = RemoteSurface(surface, kind="pointer", serialize=False)
    lies, known, unknown = {}, set(), set()
    for op in surface.ops:
        for case in remote.cases(op):
            result = remote.call(case)
            for head in filter(is_remote, tensors(surface, result)):
                form = head.child.known_form
                (unknown if form is None else known).add(op.name)
                if form is not None and head.child.point_to_attr is None and facts(form) != facts(find_stored(head)):
                    lies[op.name] = (facts(form), facts(find_stored(head)))

    assert lies == {}
    assert len(known) > 9 * len(unknown - known)


@pytest.mark.parametrize(
    "call",
    [
        torch.rand_like,
        torch.bernoulli,
        torch.nn.functional.dropout,
        lambda x: torch.normal(x, x),
        lambda x: torch.rrelu(x, training=True),
        lambda x: torch.multinomial(x, 1),
    ],
)
def test_inferring_a_form_draws_no_random_numbers(hook: Any, call: Any) -> None:
    from syft_core.workers.party.virtual import VirtualWorker  # noqa: PLC0415

    data = torch.rand(4, 4)
    torch.manual_seed(0)
    expected = call(data)
    forms.predictions.clear()
    p = data.send(VirtualWorker(hook, id="bob"))
    torch.manual_seed(0)

    assert call(p).get().equal(expected)


# --- nobody is asked


def test_a_form_that_can_be_known_is_not_asked_for(bob: Any) -> None:
    x, y = torch.rand(3, 4).send(bob), torch.rand(4, 5, requires_grad=True).send(bob)
    z = (x @ y).relu().sum(0)
    parts = z.split(2)
    bob.log_msgs = True

    assert (z.shape, z.dtype, z.requires_grad, z.is_leaf) == (torch.Size([5]), torch.float32, True, False)
    assert (z.size(0), z.dim(), z.ndim, len(z), z.numel(), z.is_sparse, z.is_floating_point()) == (
        5, 1, 1, 5, 5, False, True,
    )  # fmt: skip
    assert [part.shape[0] for part in parts] == [2, 2, 1]
    assert y.requires_grad
    assert y.is_leaf
    assert y.grad is None
    assert bob.msg_history == []


def test_a_form_that_depends_on_values_comes_with_the_reply(bob: Any) -> None:
    found = torch.tensor([0.0, 1.0, 2.0]).send(bob).nonzero()
    bob.log_msgs = True

    assert found.shape == (2, 1)
    assert bob.msg_history == []


def test_numpy_arrays_have_forms_too(carol: Any, numpy_hook: Any) -> None:
    x = numpy_hook.ones((2, 3), dtype="int16").send(carol)
    y = x + x
    carol.log_msgs = True

    assert (x.shape, x.dtype, x.ndim, x.size, len(x)) == ((2, 3), np.dtype("int16"), 2, 6, 2)
    assert y.shape == (2, 3)
    assert carol.msg_history == []


# --- what changes


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.unsqueeze_(0),
        lambda x: x.t_(),
        lambda x: x.requires_grad_(),
        lambda x: x.add_(torch.ones(2, 3, requires_grad=True) if x.location is None else x.location.gift),
        lambda x: setattr(x, "data", x.data.double()),
        lambda x: setattr(x, "requires_grad", True),
    ],
)
def test_a_form_that_is_changed_in_place_is_known_as_it_is(bob: Any, change: Any) -> None:
    x = torch.rand(2, 3).send(bob)
    bob.gift = torch.ones(2, 3, requires_grad=True).send(bob)
    second, other = x.child.clone(), torch.rand(7).send(bob)
    change(x)

    assert facts(x) == facts(find_stored(x))
    assert [second.shape, second.dtype] == facts(find_stored(x))[:2]
    assert facts(other) == facts(find_stored(other))


def test_modes_that_affect_a_form_are_part_of_the_signature(bob: Any) -> None:
    x, count = torch.rand(3, requires_grad=True).send(bob), torch.tensor([1, 2]).send(bob)
    for grad in (True, False, True):
        with torch.set_grad_enabled(grad):
            assert (x * 2).requires_grad is grad
    with torch.inference_mode():
        assert (x * 2).requires_grad is False
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            assert (count / 2).dtype == dtype
        finally:
            torch.set_default_dtype(torch.float32)


def test_autocast_is_part_of_the_signature(hook: Any) -> None:
    from syft_core.workers.party.virtual import VirtualWorker  # noqa: PLC0415

    x = torch.rand(3, 3).send(VirtualWorker(hook, id="bob"))
    assert (x @ x).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = x @ x
        assert product.dtype == find_stored(product).dtype == torch.bfloat16
    assert (x @ x).dtype == torch.float32


def test_numbers_that_are_sizes_are_distinguished(bob: Any) -> None:
    x = torch.rand(4, 4).send(bob)

    assert [x[:n].shape[0] for n in (1, 2, 3)] == [1, 2, 3]
    assert [x.narrow(0, 0, n).shape[0] for n in (1, 2, 3)] == [1, 2, 3]
    assert [x.sum(0, keepdim=keep).dim() for keep in (True, False)] == [2, 1]
    assert [torch.sum(x, dim).dim() for dim in (0, (0, 1))] == [1, 0]
    assert (x * 2).dtype == torch.float32
    assert (x.long() * 2).dtype == torch.int64
    assert (x.long() * 2.0).dtype == torch.float32


@pytest.mark.parametrize(
    ("call", "numbers"),
    [
        (lambda x, scale: F.interpolate(x, scale_factor=scale), (1.5, 2.0, 3.0)),
        (lambda x, scale: F.interpolate(x, scale_factor=(scale, 1.0)), (1.5, 2.0, 3.0)),
        (lambda x, probability: F.dropout(x, probability), (0.5, 0.0)),
        (lambda x, probability: torch.dropout(x, probability, True), (0.0, 0.5)),
    ],
)
def test_floats_that_determine_a_form_are_distinguished(bob: Any, call: Any, numbers: Any) -> None:
    x = torch.rand(1, 1, 4, 4, requires_grad=True).send(bob)
    results = [call(x, number) for number in numbers]

    assert [facts(result) for result in results] == [facts(find_stored(result)) for result in results]
    assert len({str(facts(result)) for result in results}) == len(numbers)


# --- gradients


def test_a_gradient_comes_and_goes(bob: Any) -> None:
    w = torch.ones(3, requires_grad=True).send(bob)
    assert w.grad is None
    (w * 2).sum().backward()
    gradient = w.grad
    assert gradient is w.grad
    bob.log_msgs = True
    assert w.grad is gradient
    assert (gradient.shape, gradient.is_sparse) == ((3,), False)
    assert bob.msg_history == []
    bob.log_msgs = False

    (w * 2).sum().backward()
    assert w.grad is gradient
    assert gradient.get().tolist() == [4.0, 4.0, 4.0]
    w.grad = None
    assert w.grad is None
    (w * 2).sum().backward()
    assert w.grad.get().tolist() == [2.0, 2.0, 2.0]


def test_a_second_pointer_sees_the_gradient_come_and_go(bob: Any) -> None:
    w = torch.ones(3, requires_grad=True).send(bob)
    second = type(w)(w.child.clone())
    (w * 2).sum().backward()
    assert second.grad is not None

    second.grad = None
    assert w.grad is None
    w.grad = torch.ones(3).send(bob)
    assert second.grad.get().tolist() == [1.0, 1.0, 1.0]
    del second.grad
    assert w.grad is None


def test_the_gradient_of_a_sent_tensor_is_known(bob: Any) -> None:
    w = torch.ones(3, requires_grad=True)
    (w * 2).sum().backward()
    bob.log_msgs = True
    p = w.send(bob)

    assert p.grad is not None
    assert p.grad.shape == (3,)
    assert len(bob.msg_history) == 1


def test_a_training_step_requests_no_forms(bob: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)).send(bob)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.rand(5, 3).send(bob)
    bob.log_msgs = True
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()

    kinds = [type(message).__name__ for message in bob.msg_history]
    assert set(kinds) == {"Run"}
    assert all(parameter.grad is None for parameter in model.parameters())
    assert len(bob.msg_history) == len(kinds)
