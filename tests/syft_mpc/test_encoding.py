"""Data of a worker is shared where it is: the client never sees it, and private data stays private."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from syft_core.exceptions import GetNotPermittedError
from syft_core.hook.chain import end_of
from syft_mpc.errors import ProtocolError

from .settings import Setting, assert_close

B = np.array([1.5, -2.0, 3.25])
PRECISION = {"base": 2, "precision_fractional": 16}


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def setting(request: pytest.FixtureRequest, any_hook: Any) -> Setting:
    return Setting(any_hook, 2, request.param)


def test_remote_numbers_are_encoded_and_decoded_by_their_worker(setting: Setting) -> None:
    bob = setting.workers[0]
    pointer = setting.plain(B).send(bob)
    encoded = pointer.fix_precision(**PRECISION)
    assert end_of(encoded).location is bob
    assert tuple(encoded.shape) == (3,)
    assert_close(np.asarray(encoded.float_precision().get()), B)
    assert_close(np.asarray(encoded.get().float_precision()), B)
    assert_close(np.asarray(pointer.get()), B)


def test_remote_numbers_are_shared_without_leaving(setting: Setting) -> None:
    bob, alice = setting.workers
    pointer = setting.plain(B).send(bob)
    ledgers = [str(worker.ledger) for worker in (bob, alice)]
    for x in (setting.share(pointer.fix_precision(**PRECISION)), pointer.encrypt(
        workers=[alice, bob], crypto_provider=setting.carol, **PRECISION
    )):  # fmt: skip
        assert [str(worker.ledger) for worker in (bob, alice)] == ledgers
        shares = [np.asarray(p.copy().get()) for p in end_of(x).child.values()]
        assert not set(np.concatenate(shares).tolist()) & set((B * 2**16).astype(int).tolist())
        assert_close(setting.read(x * x), B * B)
        ledgers = [str(worker.ledger) for worker in (bob, alice)]
    assert_close(np.asarray(pointer.get()), B)


def test_data_of_two_workers_is_computed_together(setting: Setting) -> None:
    bob, alice = setting.workers
    x = setting.share(setting.plain(B).send(bob).fix_precision(**PRECISION))
    y = setting.share(setting.plain(B * 2).send(alice).fix_precision(**PRECISION))
    assert_close(setting.read((x * y).sum()), (B * B * 2).sum())


def test_remote_integers_are_shared(setting: Setting) -> None:
    x = setting.share(setting.plain(np.array([4, -5])).send(setting.workers[1]))
    assert np.asarray(x.get()).tolist() == [4, -5]


def test_remote_floats_are_refused(setting: Setting) -> None:
    pointer = setting.plain(B).send(setting.workers[0])
    with pytest.raises(ProtocolError, match="cannot share float64 numbers"):
        setting.share(pointer)
    assert_close(np.asarray(pointer.get()), B)


def test_the_worker_of_the_data_must_be_a_party(setting: Setting) -> None:
    bob, alice, dave = setting.everybody
    encoded = setting.plain(B).send(dave).fix_precision(**PRECISION)
    with pytest.raises(ProtocolError, match="cannot share data of worker 'dave' among other workers"):
        encoded.share(bob, alice, crypto_provider=setting.carol)
    assert_close(np.asarray(encoded.get().float_precision()), B)


def test_remote_numbers_that_do_not_fit_become_the_nearest_that_do(setting: Setting) -> None:
    numbers = np.array([1e30, -1e30, float("inf"), float("nan")])
    x = setting.share(setting.plain(numbers).send(setting.workers[0]).fix_precision())
    found = setting.read(x)
    np.testing.assert_allclose(found, [2**62 / 1000, -(2**62) / 1000, 2**62 / 1000, 0], rtol=1e-5)


def test_objects_are_freed(setting: Setting) -> None:
    setting.put(B)
    before = setting.count()
    pointer = setting.plain(B).send(setting.workers[0])
    x = setting.share(pointer.fix_precision(**PRECISION))
    x.get()
    del pointer, x
    assert setting.count() == before


def test_private_data_stays_private_until_it_is_released(setting: Setting) -> None:
    me = setting.hook.local_worker
    bob, alice = setting.workers
    me.user = "owner"
    pointer = setting.plain(B).private_tensor(["owner"]).send(bob)
    me.user = "stranger"
    encoded = pointer.fix_precision(**PRECISION)
    with pytest.raises(ProtocolError, match="its owner does not trust them; ask the owner to call `bob.trust"):
        setting.share(encoded)
    with pytest.raises(GetNotPermittedError):
        encoded.get()
    bob.trust(alice, setting.carol)
    total = (setting.share(encoded) ** 2).sum()
    with pytest.raises(GetNotPermittedError, match="it is private"):
        total.get()
    with pytest.raises(GetNotPermittedError):
        total.reconstruct()
    numbers = total.request("the sum of squares")
    for worker in (bob, alice):
        worker.approve(numbers[worker.id])
    assert float(np.asarray(total.get().float_precision())) == pytest.approx((B**2).sum(), abs=1e-2)
    with pytest.raises(GetNotPermittedError):
        encoded.get()
