"""Whoever records what the parties send, and later breaks into a worker, finds no mask of an earlier run there."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_mpc.channel import Channel  # noqa: E402
from syft_mpc.errors import CheatingError, ProtocolError  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.prg import SEED_BYTES, Stream, advance_seed, derive_key  # noqa: E402
from syft_mpc.protocol import PROVIDER, Spec, describe_call, rehearse  # noqa: E402

from .groups import Group  # noqa: E402

VALUES = np.arange(6)
SPEC = Spec((6,))
STEPS = 4
"""How often an attacker who has a seed replaces it."""


class Recorder:
    """Records what the first party sends to the second one in each run."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def __call__(self, sender: int, receiver: int, payload: Any) -> None:
        if (sender, receiver) == (0, 1) and type(payload) is tuple:
            self.sent.append(payload)


def find_secrets(channel: Channel) -> set[bytes]:
    """Return everything in the memory of a channel that may be a seed or a key."""
    seen: set[int] = set()
    found: set[bytes] = set()
    pending: list[Any] = [vars(channel)]
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, ModuleType | type | FunctionType | BuiltinFunctionType | MethodType):
            continue  # Functions lead to the other workers.
        seen.add(id(item))
        assert not isinstance(item, Stream)
        if isinstance(item, bytes | bytearray) and len(item) == SEED_BYTES:
            found.add(bytes(item))
        pending.extend(gc.get_referents(item))
    return found


def list_keys(secret: bytes, labels: list[bytes]) -> Iterator[bytes]:
    """Return the keys of all streams that an attacker can compute from a secret."""
    for _ in range(STEPS):
        used, following = advance_seed(secret)
        for seed in (secret, used):
            yield seed
            for label in labels:
                for number in range(3):
                    pool = derive_key(seed, label, number)
                    yield pool
                    yield advance_seed(pool)[0]
        secret = following


def is_opened(mask: Any, secrets: set[bytes], labels: list[bytes]) -> bool:
    """Return whether an attacker who has secrets finds the random numbers under which a share was sent."""
    start = np.asarray(mask).tobytes()[:8]
    return any(Stream.of_key(key).take(8) == start for secret in secrets for key in list_keys(secret, labels))


def list_labels(name: str, *specs: Spec, **options: Any) -> list[bytes]:
    demands = rehearse(NumpyKernels(), name, specs, tuple(sorted(options.items())), 2).demands
    labels = [demand.label for demand in demands]
    call = describe_call(name, list(specs), options)
    return [*labels, *(b"prepared" + label for label in labels), b"common" + call, b"zeros" + call]


def run_square(group: Group, x: Any) -> Any:
    assert (group.open(group.run("square", x)) == VALUES**2).all()


def fail(group: Group, x: Any) -> Any:
    """Let the second party send something malformed after the first one has sent its share."""
    group.alter = lambda sender, _to, arrays: (arrays[0][:1],) if sender == 1 else arrays
    with pytest.raises(ProtocolError):
        group.run("square", x)


def refuse(group: Group, x: Any) -> Any:
    """The first party sends its share in a run that the others refuse."""
    group.number += 1
    group._start(0, "square", [x[0]], {}, lambda *_end: None)
    for rank in (1, PROVIDER):
        group.channels[rank].refuse(group.number, ProtocolError("no"))


def cheat(group: Group, x: Any) -> Any:
    group.alter = lambda sender, to, arrays: (arrays[0] + 1, *arrays[1:]) if (sender, to) == (1, 0) else arrays
    group.run("square", x)
    zeros = np.zeros((3, 6), "int64")
    _, errors = group.attempt("auth_open", [zeros, zeros])
    assert CheatingError in {type(error) for error in errors.values()}


def skip_numbers(group: Group, x: Any) -> Any:
    run_square(group, x)
    group.number += 5
    run_square(group, x)


SITUATIONS: dict[str, Callable[[Group, Any], Any]] = {
    "a run": run_square,
    "a run that fails": fail,
    "a run that others refuse": refuse,
    "a party cheats": cheat,
    "numbers are skipped": skip_numbers,
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_after_a_run_no_worker_can_compute_its_masks(situation: str) -> None:
    recorder = Recorder()
    group = Group(2, NumpyKernels(), recorder)
    x, labels = group.share(VALUES), list_labels("square", SPEC)
    before = {rank: find_secrets(channel) for rank, channel in group.channels.items()}

    SITUATIONS[situation](group, x)

    mask = np.asarray(x[0]) - recorder.sent[0][0]
    after = {rank: find_secrets(channel) for rank, channel in group.channels.items()}
    assert is_opened(mask, before[0], labels)  # So the attack works, but comes too late.
    assert is_opened(mask, before[PROVIDER], labels)
    for rank in group.channels:
        assert not is_opened(mask, after[rank], labels)
        assert not before[rank] & after[rank] - set(group.channels[rank].keys.seeds.values())


def test_random_numbers_without_a_provider_are_forgotten_too() -> None:
    group = Group(2, NumpyKernels())
    before = find_secrets(group.channels[1])
    labels = list_labels("zero", SPEC)

    zeros = group.run("zero", group.share(VALUES))

    assert is_opened(zeros[0], before, labels)
    for channel in group.channels.values():
        assert not is_opened(zeros[0], find_secrets(channel), labels)


def test_what_is_prepared_is_forgotten_when_it_is_used() -> None:
    recorder = Recorder()
    group = Group(2, NumpyKernels(), recorder)
    x, labels = group.share(VALUES), list_labels("square", SPEC)
    group.prepare("square", (SPEC,), 3)
    prepared = find_secrets(group.channels[0])

    for _ in range(3):
        run_square(group, x)
        mask = np.asarray(x[0]) - recorder.sent[-1][0]
        for channel in group.channels.values():
            assert not is_opened(mask, find_secrets(channel), labels)

    assert is_opened(np.asarray(x[0]) - recorder.sent[0][0], prepared, labels)
    assert all(not channel._pools and not channel._stock and not channel.held for channel in group.channels.values())


def test_the_provider_forgets_a_kept_mask_with_its_handle_and_products_with_it_at_once() -> None:
    recorder = Recorder()
    group = Group(2, NumpyKernels(), recorder)
    x, y, labels = group.share(VALUES), group.share(VALUES), list_labels("spdz_mask", SPEC)
    handle, number = group.run("spdz_mask", y), group.number
    provider = group.channels[PROVIDER]
    mask = np.asarray(y[0]) - recorder.sent[0][0]
    assert is_opened(mask, find_secrets(provider), labels)  # It needs the mask for products.

    products = list_labels("spdz_mul_masked", SPEC, SPEC, mask=number)
    assert (group.open(group.run("spdz_mul_masked", x, y, mask=number)) == VALUES**2).all()
    for channel in group.channels.values():
        assert not is_opened(np.asarray(x[0]) - recorder.sent[1][0], find_secrets(channel), products)

    del handle, group.provided[number]
    gc.collect()
    run_square(group, x)
    for channel in group.channels.values():
        assert not is_opened(mask, find_secrets(channel), labels)


def test_a_channel_that_is_closed_has_no_seeds() -> None:
    group = Group(2, NumpyKernels())
    group.prepare("square", (SPEC,), 3)

    for channel in group.channels.values():
        keys = set(copy.copy(channel.keys.seeds).values())
        channel.close(ProtocolError("closed"))
        assert find_secrets(channel) == keys


def test_a_run_far_ahead_is_refused() -> None:
    group = Group(2, NumpyKernels())
    group.number = 1 << 40

    with pytest.raises(ProtocolError, match="cannot start run .*: it is too far ahead"):
        group.run("zero", group.share(VALUES))
