"""Calls on private data that fail for all values of their forms raise the error of the framework at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import OperationFailedError  # noqa: E402
from syft_core.hook import signatures  # noqa: E402
from syft_core.messages import Describe  # noqa: E402
from syft_core.workers.seeing import disclosure  # noqa: E402

F = torch.nn.functional

pytestmark = pytest.mark.filterwarnings("ignore")


def private(worker: Any, value: Any) -> Any:
    """Return a pointer to data of the worker's own that is for alice only."""
    tag = f"#{worker.objects_count}"
    worker.load_data([value.private_tensor(["alice"]).tag(tag)])
    return worker.search(tag)[0]


def wait(result: Any) -> None:
    """Wait until a result was computed; by wire, its failure is raised then."""
    pointer = (result if isinstance(result, torch.Tensor) else result[0]).child
    pointer._location.ask(Describe((pointer.id_at_location,), None))


@pytest.fixture
def doubles(bob: Any, me: Any) -> Any:
    """Private data as `numpy.save` writes it."""
    me.user = "eve"
    return private(bob, torch.from_numpy(np.random.default_rng(7).normal(size=(8, 3))))


def test_data_of_another_dtype_than_the_model_raises_at_the_first_layer(doubles: Any, bob: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).send(bob)

    with pytest.raises(RuntimeError, match="mat1 and mat2 must have the same dtype, but got Double and Float"):
        wait(model(doubles))


def test_a_model_of_the_right_dtype_trains(doubles: Any, bob: Any, me: Any) -> None:
    model = torch.nn.Linear(3, 1).double().send(bob)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    for _ in range(2):
        optimizer.zero_grad()
        F.mse_loss(model(doubles), torch.ones(8, 1, dtype=torch.float64).send(bob)).backward()
        optimizer.step()

    me.user = "alice"
    assert model.weight.copy().get().abs().gt(0).all()


CALLS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "matmul": (lambda s, p: s @ p(3, 2), "same dtype, but got: double != float"),
    "addmm_": (lambda s, p: p(8, 2).addmm_(s, p(3, 2).double()), "dtype|type"),
    "bmm": (lambda s, p: torch.bmm(s.view(2, 4, 3), p(2, 3, 1)), "scalar type Double but found Float"),
    "conv1d": (lambda s, p: F.conv1d(s.view(1, 8, 3), p(2, 8, 2)), "type"),
    "einsum": (lambda s, p: torch.einsum("ij,jk->ik", s, p(3, 2)), "scalar type Double but found Float"),
    "solve": (lambda s, p: torch.linalg.solve(s[:3], p(3, 2)), "same dtype|scalar type"),
    "embedding": (lambda s, p: F.embedding(s, p(5, 2)), "one of the following scalar types: Long, Int"),
    "nll_loss": (lambda s, p: F.nll_loss(s, p(8)), "expected target dtype|scalar type Long"),
    "scatter": (lambda s, p: p(8, 3).scatter(0, s.long(), s), "dtype"),
    "index_add": (lambda s, p: p(8, 3).index_add(0, p(8).long(), s), "dtype|type"),
    "lerp": (lambda s, p: torch.lerp(s, p(8, 3), 0.5), "dtype"),
    "dropout": (lambda s, p: F.dropout(s, 1.5), "between 0 and 1, but got 1.5"),
    "division": (lambda s, p: s.long() // 0, "ZeroDivisionError"),
    "batch_norm": (lambda s, p: F.batch_norm(s, p(3).double(), p(4).double()), "running_var should contain 3"),
    "bitwise": (lambda s, p: s & s, "not implemented for 'Double'"),
    "lstm": (lambda s, p: torch.nn.LSTM(3, 2).send(p.worker)(s), "d?type"),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_fails_for_all_values_raises_the_error_of_the_framework(doubles: Any, bob: Any, name: str) -> None:
    call, text = CALLS[name]

    def public(*shape: int) -> Any:
        return torch.zeros(shape).send(bob)

    public.worker = bob  # type: ignore[attr-defined]
    for _ in range(2):  # The second call has a known signature.
        with pytest.raises((RuntimeError, ValueError, IndexError), match=text) as caught:
            wait(call(doubles, public))
        assert type(caught.value).__module__ != "syft_core.exceptions"


def test_a_probability_that_was_valid_before_does_not_hide_one_that_is_not(doubles: Any) -> None:
    wait(F.dropout(doubles, 0.5))

    with pytest.raises(ValueError, match=r"between 0 and 1, but got 1\.5"):
        wait(F.dropout(doubles, 1.5))


def test_what_fails_only_for_some_values_does_not_raise(doubles: Any, bob: Any) -> None:
    square = doubles[:3]
    for call in (
        lambda: torch.linalg.inv(square),
        lambda: torch.linalg.cholesky(square),
        lambda: torch.bernoulli(doubles),
        lambda: doubles.long() // doubles.long(),
        lambda: F.one_hot(doubles.long(), 3),
    ):
        wait(call())


def test_a_backward_pass_that_fails_for_all_values_raises_the_error_of_the_framework(doubles: Any, bob: Any) -> None:
    w = torch.ones(3, dtype=torch.float64, requires_grad=True).send(bob)
    loss = (doubles * w).sum()
    wait(loss)
    loss.backward()

    for call, text in (
        (loss.backward, "Trying to backward through the graph a second time"),
        ((doubles * w).backward, "grad can be implicitly created only for scalar outputs"),
        (doubles.sum().backward, "does not require grad"),
    ):
        with pytest.raises(RuntimeError, match=text):
            wait(call() or w)


def test_a_plan_on_private_data_of_another_dtype_raises(doubles: Any, bob: Any) -> None:
    @sy.func2plan(args_shape=[(8, 3)])
    def apply(x: Any) -> Any:
        return x @ torch.ones(3, 1)

    pointer = apply.send(bob)

    with pytest.raises(Exception, match="dtype|float32"):
        wait(pointer(doubles))


def test_a_large_form_is_tried_without_its_memory(doubles: Any, bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syft_torch.attributes._LARGEST_EXAMPLE", 16)

    with pytest.raises(RuntimeError, match="must have the same dtype"):
        wait(torch.nn.Linear(3, 1).send(bob)(doubles))
    wait(torch.linalg.inv(doubles[:3]))


def test_a_signature_is_tried_once(doubles: Any, bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(signatures, "_memos", {})
    known = disclosure._run_on_examples
    monkeypatch.setattr(disclosure, "_run_on_examples", lambda execution: tried.append(1) or known(execution))

    for rate in (0.25, 0.5, 0.75):
        wait(torch.add(doubles.view(2, 12), doubles.view(2, 12), alpha=rate))

    assert len(tried) == 2  # for `view` and `add`


# --- numpy


def test_private_integers_of_numpy_can_be_inverted(carol: Any, numpy_hook: Any) -> None:
    carol.load_data([numpy_hook.array([[2, 1], [1, 1]]).private_tensor(["alice"]).tag("#n")])
    (secret,) = carol.search("#n")

    inverse = np.linalg.inv(secret)

    numpy_hook.local_worker.user = "alice"
    assert np.allclose(inverse.get(), [[1, -1], [-1, 2]])


def test_a_call_of_numpy_that_fails_for_all_values_raises(carol: Any, numpy_hook: Any) -> None:
    carol.load_data([numpy_hook.array([[2.0, 1.0], [1.0, 1.0]]).private_tensor(["alice"]).tag("#n")])
    (secret,) = carol.search("#n")

    with pytest.raises(TypeError, match="bitwise_and' not supported for the input types"):
        np.bitwise_and(secret, secret).shape  # noqa: B018
    with pytest.raises(ValueError, match="axis 5 is out of bounds"):
        np.sum(secret, axis=5).shape  # noqa: B018


def test_a_failure_for_some_values_is_reported_to_users_who_may_have_them(doubles: Any, bob: Any, me: Any) -> None:
    failed = torch.bernoulli(doubles * 100)

    me.user = "alice"
    with pytest.raises(OperationFailedError, match="torch.bernoulli that failed with RuntimeError"):
        failed.get()
