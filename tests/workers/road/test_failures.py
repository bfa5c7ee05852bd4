"""Failures on private values are disclosed only to users who may have the values."""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")

import numpy as np
import torch

import syft_core as sy
from syft_core.exceptions import (
    DomainError,
    GetNotPermittedError,
    OperationFailedError,
    OperationNotAllowedError,
    SyftError,
    ValueRefusedError,
)
from syft_core.hook import signatures
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.hook.chain import plain_end
from syft_core.hook.hook_args import default_register_tensor
from syft_core.hook.overload import overloaded
from syft_core.messages import Describe
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.tensors.abstract import AbstractTensor
from syft_core.workers.seeing import permissions
from syft_worker.allowances import Allowance
from syft_worker.quotas import QuotaGuard

F = torch.nn.functional

# The operations are given what they do not take.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def eve(me: Any) -> Any:
    """The local worker, as a user who may not have alice's data."""
    me.user = "eve"
    return me


def private(worker: Any, value: Any) -> Any:
    """Return a pointer to data of the worker's own that is for alice only."""
    tensor = value if isinstance(value, torch.Tensor) else torch.tensor(value)
    return store(worker, tensor.private_tensor(["alice"]))


def store(worker: Any, value: Any) -> Any:
    tag = f"#{worker.objects_count}"
    worker.load_data([value.tag(tag)])
    return worker.search(tag)[0]


def restrict_only(worker: Any, value: Any) -> Any:
    """Return a pointer to a plain tensor that is for alice only because of how it came about: a gradient."""
    secret = private(worker, torch.tensor(value, dtype=torch.float32))
    w = torch.zeros(secret.shape, requires_grad=True).send(worker)
    (w * secret).sum().backward()
    return w.grad


def learn(call: Callable[[], Any]) -> Any:
    """Return everything that the client can observe about a result without fetching it."""
    try:
        result = call()
    except Exception as error:  # noqa: BLE001  # an error is an answer too
        return type(error), str(error), error.__cause__, error.__context__, getattr(error, "__notes__", None)
    parts = result if isinstance(result, (tuple, list)) else [result]
    return type(result), [form_of(part) for part in parts]


def form_of(part: Any) -> Any:
    child = getattr(part, "child", None)
    if child is None:
        return part
    known = part.shape, part.dtype, part.requires_grad, part.is_leaf, part.stride(), part.is_contiguous()
    (asked,) = child._location.ask(Describe((child.id_at_location,), child.point_to_attr))
    return type(part), type(child), known, asked


def matrix(*rows: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(rows)


DEFINITE, INDEFINITE = matrix((2.0, 1.0), (1.0, 2.0)), matrix((1.0, 2.0), (2.0, 1.0))
SINGULAR, NAN = matrix((1.0, 1.0), (1.0, 1.0)), torch.full((2, 2), float("nan"))

Call = Callable[[Any, Any], Any]
"""Takes a secret and a public tensor of five numbers."""
ORACLES: dict[str, tuple[Call, Any, Any]] = {
    "bernoulli": (lambda s, p: torch.bernoulli(s), [0.5, 0.5], [0.5, 1.5]),
    "bernoulli in place": (lambda s, p: (s * 1).bernoulli_(s), [0.5, 0.5], [0.5, 1.5]),
    "expanded": (lambda s, p: torch.bernoulli(s.expand(3, 2)), [0.5, 0.5], [0.5, 1.5]),
    "poisson": (lambda s, p: torch.poisson(s), [1.0, 2.0], [1.0, -2.0]),
    "multinomial": (lambda s, p: torch.multinomial(s, 1), [1.0, 2.0], [0.0, -2.0]),
    "normal": (lambda s, p: torch.normal(s, s), [1.0, 2.0], [1.0, -2.0]),
    "entropy": (lambda s, p: F.binary_cross_entropy(s, s), [0.5, 0.5], [0.5, 1.5]),
    "index": (lambda s, p: p[s], [0, 4], [0, 5]),
    "index of several": (lambda s, p: p.view(5, 1)[s, 0 * s], [0, 4], [0, 5]),
    "set an item": (lambda s, p: (p * s[0]).__setitem__(s, 1.0), [0, 4], [0, 5]),
    "gather": (lambda s, p: p.gather(0, s), [0, 4], [0, 5]),
    "scatter": (lambda s, p: p.scatter(0, s, p), [0, 4], [0, 5]),
    "take": (lambda s, p: torch.take(p, s), [0, 4], [0, 5]),
    "index_select": (lambda s, p: p.index_select(0, s), [0, 4], [0, 5]),
    "index_add": (lambda s, p: p.index_add(0, s, p[:2]), [0, 4], [0, 5]),
    "embedding": (lambda s, p: F.embedding(s, p.view(5, 1)), [0, 4], [0, 5]),
    "embedding_bag": (lambda s, p: F.embedding_bag(s.view(1, 2), p.view(5, 1)), [0, 4], [0, 5]),
    "nll_loss": (lambda s, p: F.nll_loss(p.expand(2, 5), s), [0, 4], [0, 5]),
    "cross_entropy": (lambda s, p: F.cross_entropy(p.expand(2, 5), s), [0, 4], [0, 5]),
    "multi_margin_loss": (lambda s, p: F.multi_margin_loss(p.expand(2, 5), s), [0, 4], [0, 5]),
    "one_hot": (lambda s, p: F.one_hot(s, 5), [0, 4], [0, 5]),
    "one_hot of any": (lambda s, p: F.one_hot(s), [0, 4], [0, -5]),
    "division": (lambda s, p: p.long()[:2] // s, [1, 2], [1, 0]),
    "remainder": (lambda s, p: p.long()[:2] % s, [1, 2], [1, 0]),
    "cholesky": (lambda s, p: torch.linalg.cholesky(s), DEFINITE, INDEFINITE),
    "inv": (lambda s, p: torch.linalg.inv(s), DEFINITE, SINGULAR),
    "inverse": (lambda s, p: s.inverse(), DEFINITE, SINGULAR),
    "solve": (lambda s, p: torch.linalg.solve(s, p[:2]), DEFINITE, SINGULAR),
    "tensorinv": (lambda s, p: torch.linalg.tensorinv(s.view(2, 1, 2), 1), DEFINITE, SINGULAR),
    "svd": (lambda s, p: torch.linalg.svd(s), DEFINITE, NAN),
    "eigh": (lambda s, p: torch.linalg.eigh(s), torch.eye(3), torch.full((3, 3), float("nan"))),
    "pinv": (lambda s, p: torch.linalg.pinv(s), DEFINITE, NAN),
    "quantile": (lambda s, p: torch.quantile(p, s), [0.5, 0.5], [0.5, 1.5]),
    "segments": (lambda s, p: torch.segment_reduce(p, "sum", lengths=s), [1, 4], [1, 5]),
    "unpooling": (lambda s, p: F.max_unpool1d(p[:2].view(1, 1, 2), s.view(1, 1, 2), 2), [0, 2], [0, 9]),
    "searching": (lambda s, p: torch.searchsorted(p[:2], p, sorter=s), [0, 1], [0, 7]),
    "with a gradient": (lambda s, p: torch.linalg.inv(s * p[1].requires_grad_()), DEFINITE, SINGULAR),
}


@pytest.mark.parametrize("name", ORACLES)
def test_a_failure_caused_by_values_looks_like_a_success(bob: Any, eve: Any, name: str) -> None:
    call, works, fails = ORACLES[name]
    public = torch.arange(5.0).send(bob)
    one, other = private(bob, works), private(bob, fails)

    seen = learn(lambda: call(one, public))

    assert learn(lambda: call(other, public)) == seen
    assert learn(lambda: call(other, public)) == seen  # what was learnt of the first try changes nothing


FLOATS = [name for name, (_, works, _) in ORACLES.items() if torch.as_tensor(works).is_floating_point()]


@pytest.mark.parametrize("name", FLOATS)
def test_a_restriction_without_a_layer_hides_failures_too(bob: Any, eve: Any, name: str) -> None:
    call, works, fails = ORACLES[name]
    public = torch.arange(5.0).send(bob)
    one, other = (restrict_only(bob, torch.as_tensor(values).tolist()) for values in (works, fails))

    assert learn(lambda: call(one, public)) == learn(lambda: call(other, public))


def _change_operand(result: Any, public: Any) -> Any:
    public.detach().add_(1)
    return result.sum().backward()


def _pass_twice(result: Any, _public: Any) -> Any:
    total = result.sum()
    total.backward()
    return total.backward()


def _pass_on(result: Any, public: Any) -> Any:
    (gradient,) = torch.autograd.grad(result.sum(), public, create_graph=True, allow_unused=True)
    return None if gradient is None else (form_of(gradient), gradient.sum().backward())


def _change_result(result: Any, _public: Any) -> Any:
    return result.add_(1).sum().backward()


AFTERWARDS = {
    "an operand changes": _change_operand,
    "two backward passes": _pass_twice,
    "gradients of gradients": _pass_on,
    "the result changes": _change_result,
    "its view": lambda result, _public: result._is_view(),
    "its place among results": lambda result, _public: result.output_nr,
    "its memory": lambda result, _public: (result.storage_offset(), result.stride(), result.is_conj()),
}


@pytest.mark.parametrize("name", ORACLES)
def test_nothing_that_is_done_with_a_failed_result_tells_that_it_failed(bob: Any, eve: Any, name: str) -> None:
    call, works, fails = ORACLES[name]

    def observe(values: Any, then: Callable[[Any, Any], Any]) -> Any:
        secret, leaf = private(bob, values), torch.arange(5.0, requires_grad=True).send(bob)
        public = leaf * 1
        try:
            made = call(secret, public)
        except (OperationNotAllowedError, ValueRefusedError) as error:  # It is refused whatever the values are.
            return str(error)
        parts = [part for part in (made if isinstance(made, tuple | list) else [made]) if part is not None]
        return [learn(lambda part=part: then(part, public)) for part in parts], leaf.grad is None  # type: ignore[misc]

    for then in AFTERWARDS.values():
        assert hide_ids(observe(works, then)) == hide_ids(observe(fails, then))


@pytest.mark.parametrize("name", ORACLES)
def test_a_failed_result_takes_as_much_of_a_quota_as_another(bob: Any, eve: Any, name: str) -> None:
    call, works, fails = ORACLES[name]
    bob.guard = QuotaGuard(bob, {"eve": Allowance(bytes=10**7)})
    public = torch.arange(5.0).send(bob) * torch.ones((), requires_grad=True).send(bob)

    def measure(values: Any) -> Any:
        secret = private(bob, values)
        kept = learn_and_keep(lambda: call(secret, public))
        gc.collect()  # In one process, an error that was caught may keep pointers.
        return learn(lambda: bob.remote.torch.zeros(10**8)), kept is None

    assert measure(works) == measure(fails)


def hide_ids(seen: Any) -> str:
    """Return what was seen as text, without the ids of objects, which are random."""
    return re.sub(r"\d{12,}", "an id", str(seen))


def learn_and_keep(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or None if it is refused."""
    with contextlib.suppress(SyftError):
        return call()


def test_a_binary_search_finds_nothing(bob: Any, eve: Any) -> None:
    secret = private(bob, [0.3])
    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        try:
            torch.bernoulli(secret - middle)
            low = middle
        except (RuntimeError, SyftError):
            high = middle

    assert low > 0.99  # it was always told the same


def test_failures_independent_of_private_values_raise_the_error_of_the_framework(bob: Any, eve: Any) -> None:
    secret, public = private(bob, [0.5, 7.0]), torch.arange(5.0).send(bob)

    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        secret + public
    with pytest.raises(RuntimeError, match="shape '\\[3\\]' is invalid for input of size 2"):
        secret.view(3)
    with pytest.raises(RuntimeError, match="must be batches of square matrices"):
        torch.linalg.inv(secret.view(1, 2))


def test_users_who_may_have_the_values_get_the_error_immediately(bob: Any, me: Any) -> None:
    me.user = "alice"
    secret, public = private(bob, [7.0]), torch.arange(5.0).send(bob)

    with pytest.raises(RuntimeError, match="to be true, but got false"):
        torch.bernoulli(secret)
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        public[secret.long()]
    with pytest.raises(IndexError, match="is out of bounds for dimension 0 with size 5"):
        public[public.long() * 10]
    assert not bob.object_store.entry(secret.id_at_location).failures


# --- who may have the result


def test_fetching_a_failed_result_raises_for_users_who_may_have_it(bob: Any, me: Any, alice: Any) -> None:
    me.user = "eve"
    secret = private(bob, [7.5, 8.25])
    sample = torch.bernoulli(secret)
    with pytest.raises(GetNotPermittedError):
        sample.get()
    me.user = "alice"

    for fetch in (sample.get, sample.copy().get, lambda: sample.move(alice), lambda: sample.remote_send(alice)):
        with pytest.raises(OperationFailedError) as caught:
            fetch()
        assert "computed with torch.bernoulli that failed with RuntimeError" in str(caught.value)
        assert "7.5" not in str(caught.value)
        assert caught.value.__context__ is None
    with sy.revealing("curiosity"), pytest.raises(OperationFailedError):
        bool(sample[0])
    assert len(bob.ledger) == 0
    assert secret.get().child.child.tolist() == [7.5, 8.25]


DERIVED: dict[str, Callable[[Any, Any], Any]] = {
    "operator": lambda x, p: x + 1,
    "with others": lambda x, p: torch.stack([p, x]),
    "in place": lambda x, p: (p * x).add_(x),
    "target": lambda x, p: (x * 0).copy_(p),
    "view": lambda x, p: x[:1],
    "copy": lambda x, p: x.copy(),
    "data": lambda x, p: x.data,
    "second failure": lambda x, p: torch.bernoulli(x * 0 - 5),
    "after many": lambda x, p: sum([torch.ones(2).send(x.location) for _ in range(80)], x),
}


@pytest.mark.parametrize("way", DERIVED)
def test_results_computed_from_a_failed_result_are_failed_too(bob: Any, me: Any, way: str) -> None:
    me.user = "eve"
    sample = torch.bernoulli(private(bob, [7.0, 8.0]))
    derived = DERIVED[way](sample, torch.ones(2).send(bob))
    me.user = "alice"

    with pytest.raises(OperationFailedError, match="torch.bernoulli that failed"):
        derived.get()


def test_targets_of_a_failed_operation_and_their_aliases_are_marked_as_failed(bob: Any, me: Any) -> None:
    me.user = "eve"
    secret, index = private(bob, [1.0, 2.0]).copy(), private(bob, [0, 9])
    view = secret[:1]

    assert secret.index_fill_(0, index, 5.0) is secret

    me.user = "alice"
    for p in (secret, view):
        with pytest.raises(OperationFailedError, match="torch.Tensor.index_fill_ that failed with IndexError"):
            p.get()
    assert index.get().child.child.tolist() == [0, 9]


def test_a_target_that_was_free_is_as_private_as_after_a_success(bob: Any, eve: Any) -> None:
    for values in ([0.5, 0.5], [0.5, 7.0]):
        gradient, target = restrict_only(bob, values), torch.zeros(2).send(bob)

        assert target.bernoulli_(gradient) is target

        with pytest.raises(GetNotPermittedError):
            target.get()


@pytest.mark.parametrize("values", [DEFINITE, SINGULAR])
def test_out_takes_the_form_of_the_result(bob: Any, eve: Any, values: Any) -> None:
    secret = private(bob, values)
    out = private(bob, [0.0]).copy()

    torch.linalg.inv(secret, out=out)

    assert out.shape == (2, 2)
    assert (out + secret).shape == (2, 2)


@pytest.mark.parametrize("values", [DEFINITE, SINGULAR])
def test_a_backward_pass_reaches_the_same_leaves(bob: Any, eve: Any, values: Any) -> None:
    secret = private(bob, values)
    w, unused = (torch.ones(2, 2, requires_grad=True).send(bob) for _ in range(2))
    loss = torch.linalg.inv(w * secret).sum()

    loss.backward()

    assert w.grad.shape == (2, 2)
    assert unused.grad is None
    with pytest.raises(GetNotPermittedError):
        w.grad.get()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()  # the graph is gone, whatever it holds


@pytest.mark.parametrize("values", [[0.5, 0.5], [0.5, 7.0]])
def test_autograd_tracks_a_failed_change_in_place(bob: Any, eve: Any, values: Any) -> None:
    secret = private(bob, values)
    w = torch.ones(2, requires_grad=True).send(bob)
    target = secret * 1
    loss = (w * target).sum()

    target.bernoulli_(secret)

    with pytest.raises(RuntimeError) as caught:  # needs the target as it was
        loss.backward()
    assert str(caught.value) == (
        "one of the variables needed for gradient computation has been modified by an inplace operation"
    )


@pytest.mark.parametrize("index", [[0, 1], [0, 9]])
def test_weights_that_an_operation_renorms_become_private(bob: Any, eve: Any, index: list[int]) -> None:
    chosen, weights = private(bob, index), torch.full((2, 3), 9.0).private_tensor(["alice", "eve"]).send(bob)

    F.embedding(chosen, weights, max_norm=1.0)

    with pytest.raises(GetNotPermittedError):
        weights.get()


def test_the_substitutes_of_failed_results_have_the_layouts_of_plain_ones(bob: Any, eve: Any) -> None:
    expected = torch.linalg.svd(torch.zeros(5, 3), False)

    found = torch.linalg.svd(private(bob, torch.full((5, 3), float("nan"))), False)

    assert [part.stride() for part in found] == [part.stride() for part in expected]
    stored = [plain_end(bob.get_obj(part.id_at_location)) for part in found]
    assert [part.stride() for part in stored] == [part.stride() for part in expected]
    assert not any(part.any() for part in stored)


@pytest.mark.parametrize("make", [lambda s: torch.linalg.svd(s + 0j), lambda s: torch.linalg.eigh(s + 0j)])
def test_operations_whose_backward_pass_may_fail_because_of_values_are_refused(bob: Any, eve: Any, make: Any) -> None:
    secret, w = private(bob, DEFINITE), torch.ones(2, 2, requires_grad=True).send(bob)

    with pytest.raises(ValueRefusedError, match="the shape of its result would reveal private values"):
        make(secret * w)
    make(secret)


def test_nothing_is_left_behind(bob: Any, eve: Any) -> None:
    secret, public = private(bob, [7.0, 8.0]), torch.arange(5.0).send(bob)
    before = bob.objects_count

    results = [torch.bernoulli(secret), public[secret.long()], torch.linalg.svd(secret.view(1, 2) / 0)]
    made = bob.objects_count
    del results
    gc.collect()

    assert (made, bob.objects_count) == (before + 5, before)


# --- other ways


def test_a_worker_that_fetches_for_others_does_not_disclose_failures(bob: Any, alice: Any, me: Any) -> None:
    me.user = "eve"
    seen = []
    for values in ([0.5, 0.5], [0.5, 7.0]):
        over_alice = torch.bernoulli(private(bob, values)).send(alice)
        with pytest.raises(GetNotPermittedError) as caught:
            over_alice.remote_get()  # alice may have it
        seen.append(type(caught.value))

    assert seen[0] == seen[1]


def test_a_gradient_sent_back_to_another_worker_does_not_disclose_failures(bob: Any, alice: Any, me: Any) -> None:
    me.user = "eve"
    for values in (DEFINITE, SINGULAR):
        w = torch.ones(2, 2, requires_grad=True).send(alice)
        at_bob = (w * 1).move(bob, requires_grad=True)

        torch.linalg.inv(at_bob * private(bob, values)).sum().backward()

        assert w.grad.shape == (2, 2)
        with pytest.raises(GetNotPermittedError):
            w.grad.get()


def test_a_stored_callable_does_not_return_failed_results(bob: Any, me: Any) -> None:
    bob.load_data([ObjectWrapper(lambda x: x.sum().item(), tags={"#sum"})])
    (total,) = bob.search("#sum")
    me.user = "eve"
    sample = torch.bernoulli(private(bob, [7.0]))
    me.user = "alice"

    with pytest.raises(OperationFailedError):
        total(sample)


class PositiveTensor(AbstractTensor):
    """A layer that supports only positive numbers."""

    @staticmethod
    @overloaded.method
    def log(tensor: Any) -> Any:
        if not (tensor > 0).all():
            raise DomainError.outside("log", 0, 1)
        return tensor.log()


default_register_tensor(PositiveTensor)


def test_domain_errors_of_a_layer_are_not_disclosed(bob: Any, eve: Any) -> None:
    seen = []
    for values in ([1.0, 2.0], [1.0, -2.0]):
        x = PositiveTensor().on(torch.tensor(values)).private_tensor(["alice"])
        seen.append(learn(store(bob, x).log))

    assert seen[0] == seen[1]


def test_a_private_object_on_another_worker_is_not_used_for_others(bob: Any, alice: Any, me: Any) -> None:
    me.user = "alice"
    secret = private(bob, [0.5]).copy()
    secret.remote_send(alice)
    me.user = "eve"

    with pytest.raises(ValueRefusedError, match="its kind of result depends on private values"):
        torch.bernoulli(secret)


def test_without_shadows_nothing_runs_and_no_error_text_is_disclosed(
    bob: Any, eve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(bob.hook.attributes), "shadow", FrameworkAttributes.shadow)
    monkeypatch.setattr(signatures, "_memos", {})

    with pytest.raises(ValueRefusedError, match="its kind of result depends on private values") as caught:
        torch.ones(2).send(bob)[private(bob, [77])]

    assert "77" not in str(caught.value)
    assert caught.value.__context__ is None


def test_the_html_of_a_worker_shows_failures(bob: Any, eve: Any) -> None:
    kept = torch.bernoulli(private(bob, [7.0]))

    assert "(torch.bernoulli that failed with RuntimeError)" in bob._repr_html_()
    assert kept.shape == (1,)


# --- policies


def test_a_worker_that_lets_nothing_leave_discloses_no_failures(bob: Any, me: Any) -> None:
    bob.policy = permissions.nothing
    one, other = torch.tensor([0.5]).send(bob), torch.tensor([7.0]).send(bob)

    assert learn(lambda: torch.bernoulli(one)) == learn(lambda: torch.bernoulli(other))


def test_no_policy_lets_private_data_leave(bob: Any, alice: Any, me: Any) -> None:
    bob.policy = lambda verb, stored, peer, value: None
    me.user = "eve"
    secret = private(bob, [1.0, 2.0])

    for p in (secret, secret + 1):
        for leave in (p.get, p.copy().get, lambda p=p: p.move(alice), lambda p=p: p.remote_send(alice)):
            with pytest.raises(GetNotPermittedError, match="it is private"):
                leave()
    with pytest.raises(ValueRefusedError):
        secret[secret > 1]
    assert learn(lambda: torch.bernoulli(secret))[0] is type(secret)
    assert torch.ones(1).send(bob).get().tolist() == [1.0]


def test_a_policy_may_restrict_allowed_users_too(bob: Any, me: Any) -> None:
    bob.policy = lambda verb, stored, peer, value: "not today" if verb == "read" else None
    me.user = "alice"

    with pytest.raises(GetNotPermittedError, match="not today"):
        private(bob, [1.0]).get()


# --- numpy


@pytest.fixture
def frank(numpy_hook: Any) -> Any:
    """The local worker of numpy, as a user who may not have dave's data."""
    numpy_hook.local_worker.user = "frank"
    return numpy_hook.local_worker


def private_array(worker: Any, value: Any) -> Any:
    return store(worker, worker.hook.array(np.array(value)).private_tensor(["dave"]))


def learn_of_arrays(call: Callable[[], Any]) -> Any:
    try:
        result = call()
    except Exception as error:  # noqa: BLE001  # an error is an answer too
        return type(error), str(error), error.__cause__, error.__context__, getattr(error, "__notes__", None)
    parts = result if isinstance(result, (tuple, list)) else [result]
    return type(result), [(type(part), part.shape, part.dtype) for part in parts if part is not None]


ARRAYS: dict[str, tuple[Call, Any, Any]] = {
    "index": (lambda s, p: p[s], [0, 4], [0, 5]),
    "take": (lambda s, p: np.take(p, s), [0, 4], [0, 5]),
    "choose": (lambda s, p: np.choose(s, [p[:2], p[:2]]), [0, 1], [0, 5]),
    "take_along_axis": (lambda s, p: np.take_along_axis(p, s, 0), [0, 4], [0, 5]),
    "put": (lambda s, p: np.put(p * s[0], s, 1.0), [0, 4], [0, 5]),
    "set an item": (lambda s, p: (p * s[0]).__setitem__(s, 1.0), [0, 4], [0, 5]),
    "power": (lambda s, p: np.power(p[:2].astype(int), s), [1, 2], [1, -1]),
    "cholesky": (lambda s, p: np.linalg.cholesky(s), DEFINITE.tolist(), INDEFINITE.tolist()),
    "expanded": (lambda s, p: np.broadcast_to(s, (3, 2)).astype(int), ["1", "2"], ["1", "b"]),
    "inv": (lambda s, p: np.linalg.inv(s), DEFINITE.tolist(), SINGULAR.tolist()),
    "solve": (lambda s, p: np.linalg.solve(s, p[:2]), DEFINITE.tolist(), SINGULAR.tolist()),
    "tensorinv": (lambda s, p: np.linalg.tensorinv(s.reshape(2, 1, 2), 1), DEFINITE.tolist(), SINGULAR.tolist()),
    "svd": (lambda s, p: np.linalg.svd(s), DEFINITE.tolist(), NAN.tolist()),
    "eig": (lambda s, p: np.linalg.eig(s), DEFINITE.tolist(), [[0.0, 1.0], [-1.0, 0.0]]),
    "average": (lambda s, p: np.average(p[:2], weights=s), [1.0, 2.0], [1.0, -1.0]),
    "quantile": (lambda s, p: np.quantile(p, s), [0.5, 0.5], [0.5, 1.5]),
    "digitize": (lambda s, p: np.digitize(p, s), [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]),
    "real": (lambda s, p: np.real_if_close(s), [1.0 + 1j], [1.0 + 0j]),
    "square root": (lambda s, p: np.emath.sqrt(s), [1.0, 2.0], [1.0, -2.0]),
    "roots": (lambda s, p: np.roots(s), [1.0, 2.0], [0.0, 2.0]),
    "text": (lambda s, p: np.char.index(s, "b"), ["ab"], ["ac"]),
    "longer text": (lambda s, p: np.char.replace(s, "b", "long"), ["ab"], ["ac"]),
    "number in a text": (lambda s, p: s.astype(int), ["12"], ["ab"]),
    "small number": (lambda s, p: p.astype("int8") + s, 1, 1000),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_failures_of_arrays_are_hidden_too(carol: Any, frank: Any, name: str) -> None:
    call, works, fails = ARRAYS[name]
    public = carol.hook.array(np.arange(5.0)).send(carol)
    one, other = private_array(carol, works), private_array(carol, fails)

    assert learn_of_arrays(lambda: call(one, public)) == learn_of_arrays(lambda: call(other, public))


def test_fetching_a_failed_array_raises_for_users_who_may_have_it(carol: Any, frank: Any) -> None:
    inverse = np.linalg.inv(private_array(carol, SINGULAR.tolist()))
    frank.user = "dave"

    with pytest.raises(OperationFailedError, match="computed with numpy.linalg.inv that failed with LinAlgError"):
        (inverse + 1).get()
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        np.linalg.inv(private_array(carol, SINGULAR.tolist()))
