"""With authenticated shares, results are right if all parties are honest, and whoever cheats is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("hypothesis")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from syft_core.hook.chain import below_wrapper  # noqa: E402
from syft_core.hook.dispatch import framework_of  # noqa: E402
from syft_mpc import authenticated  # noqa: E402
from syft_mpc.errors import CheatingError, ProtocolError  # noqa: E402
from syft_mpc.group import find_group  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.protocol import PROTOCOLS, PROVIDER, Spec, rehearse  # noqa: E402
from syft_mpc.spdz import IMAGES, MATRICES  # noqa: E402

from .groups import (  # noqa: E402
    Group,
    Shares,
    make_kernels,
)


def to_array(group: Group, values: Any) -> Any:
    return group.kernels.from_bytes(bytearray(values.tobytes()), "int64", values.shape)


def share(group: Group, values: Any, owner: int = 0) -> Shares:
    """Let one party input values."""
    zeros = to_array(group, np.zeros_like(values))
    arrays = [to_array(group, values) if rank == owner else zeros for rank in range(group.count)]
    return group.run("auth_input", arrays, owner=owner)


def reveal(group: Group, shares: Shares) -> Any:
    """Open values; all parties get the same."""
    first, *others = (np.asarray(opened) for opened in group.run("auth_open", shares))
    assert all((other == first).all() for other in others)
    return first


@pytest.fixture(params=[("numpy", 2), ("numpy", 3), ("numpy", 4), ("torch", 2), ("torch", 3)], ids=str)
def group(request: pytest.FixtureRequest) -> Group:
    framework, count = request.param
    return Group(count, make_kernels(framework))


EDGES = np.array([0, 1, -1, (1 << 31) - 1, -(1 << 31), 12345])


def test_every_party_can_input_values_and_all_can_open_them(group: Group) -> None:
    for owner in range(group.count):
        assert (reveal(group, share(group, EDGES, owner)) == EDGES).all()


def test_a_client_inputs_values_that_no_party_sees(group: Group) -> None:
    results, errors = group.attempt("auth_random", shape=EDGES.shape)
    published = to_array(group, EDGES) - results[PROVIDER]
    masks = [results[rank] for rank in range(group.count)]

    shares = group.run("auth_add_public", masks, [published] * group.count)

    assert not errors
    assert (reveal(group, shares) == EDGES).all()


def test_sums_and_public_factors_are_computed_on_the_whole_array(group: Group) -> None:
    x, y = np.array([5, -7, 1 << 20]), np.array([-6, 2, 3])
    pairs = list(zip(share(group, x, 0), share(group, y, 1), strict=True))

    assert (reveal(group, [a + b for a, b in pairs]) == x + y).all()
    assert (reveal(group, [3 * a - b for a, b in pairs]) == 3 * x - y).all()
    public = [to_array(group, y)] * group.count
    assert (reveal(group, group.run("auth_add_public", [a for a, _ in pairs], public)) == x + y).all()


def test_products_are_exact_modulo_2_to_the_32(group: Group) -> None:
    random = np.random.default_rng(7)
    x, y = random.integers(-(1 << 31), 1 << 31, (3, 4)), random.integers(-(1 << 31), 1 << 31, (4,))
    matrix = random.integers(-999, 999, (4, 2))
    image, filters = random.integers(-99, 99, (1, 2, 5, 5)), random.integers(-99, 99, (3, 2, 3, 3))
    shares = share(group, x)

    product = reveal(group, group.run("auth_mul", shares, share(group, y, 1)))
    assert (product == (x * y).astype("int32")).all()
    product = reveal(group, group.run("auth_mul", shares, share(group, matrix), op=MATRICES))
    assert (product == (x @ matrix).astype("int32")).all()
    product = group.run("auth_mul", share(group, image), share(group, filters), op=IMAGES, padding=(1, 1))
    assert (reveal(group, product) == NumpyKernels().conv2d(image, filters, (1, 1), (1, 1))).all()


@pytest.mark.parametrize("divisor", [2, 7, 1000, 65536])
def test_divided_products_are_never_off_by_one_or_more(group: Group, divisor: int) -> None:
    random = np.random.default_rng(7)
    x, y = random.integers(-(1 << 15), 1 << 15, (2, 300))
    x[:3], y[:3] = [(1 << 15) - 1, -(1 << 15) + 1, 0], (1 << 15) - 1

    found = reveal(group, group.run("auth_mul", share(group, x), share(group, y), divisor=divisor))

    assert (np.abs(found * divisor - x * y) < divisor).all()


@pytest.mark.parametrize(
    ("dtype", "owner", "message"),
    [
        ("int32", 0, "cannot authenticate int32 numbers: tags need words of 64 bits"),
        ("int64", 9, "cannot take the input of party 9"),
    ],
)
def test_small_words_and_unknown_owners_are_refused(group: Group, dtype: str, owner: int, message: str) -> None:
    words = [group.kernels.zeros((3,), dtype)] * group.count

    with pytest.raises(ValueError, match=message):
        group.run("auth_input", words, owner=owner)


def test_products_of_products_stay_authenticated(group: Group) -> None:
    x = np.array([3, -2, 5])
    shares = share(group, x)
    for _ in range(4):
        shares = group.run("auth_mul", shares, share(group, x, 1))

    assert (reveal(group, shares) == x**5).all()


COSTS: list[tuple[int, str, tuple[Spec, ...], dict[str, Any]]] = [
    (2, "auth_random", (), {"shape": (4, 2)}),
    (2, "auth_input", (Spec((5,)),), {"owner": 1}),
    (2, "auth_open", (Spec((3, 5)),), {}),
    (3, "auth_open", (Spec((5, 4, 2)),), {}),
    (2, "auth_mul", (Spec((3, 4, 3)), Spec((3, 3))), {}),
    (2, "auth_truncate", (Spec((3, 5)),), {"divisor": 10}),
    (3, "auth_truncate", (Spec((5, 4, 2)),), {"divisor": 10}),
    (3, "auth_mul", (Spec((5, 4, 3)), Spec((5, 3, 2))), {"op": MATRICES, "divisor": 10}),
    (3, "auth_add_public", (Spec((5, 4)), Spec((4,))), {}),
]


@pytest.mark.parametrize(("count", "name", "specs", "options"), COSTS)
def test_a_protocol_costs_what_its_declaration_says(count: int, name: str, specs: Any, options: Any) -> None:
    group, entry = Group(count, NumpyKernels()), PROTOCOLS[name]
    operands = [
        share(group, np.zeros(spec.shape[1:], "int64"))
        if len(spec.shape) > 1  # an authenticated value
        else [np.zeros(spec.shape, "int64")] * count
        for spec in specs
    ]

    measured = group.measure(name, *operands, **options)

    declared = tuple(cost if isinstance(cost, int) else cost(*specs, **options) for cost in (entry.rounds, entry.sends))
    assert measured == declared
    rehearsed = rehearse(NumpyKernels(), name, specs, tuple(sorted(options.items())), count)
    assert (rehearsed.rounds, rehearsed.sends) == declared


def test_every_protocol_on_authenticated_shares_has_its_costs_tested() -> None:
    assert {name for name in PROTOCOLS if name.startswith("auth_")} == {name for _, name, _, _ in COSTS}


def test_input_among_three_parties_takes_a_third_round_to_compare_digests() -> None:
    group = Group(3, NumpyKernels())
    zeros = np.zeros(5, "int64")

    assert group.measure("auth_input", [zeros] * 3, owner=1) == (3, 5 * 8 * (6 + 3) + 2 * 16 + 3 * 32)


# --- cheating


def change(array: Any, place: int, amount: int) -> Any:
    """Change one element: of a share, by something that is not 0 modulo 2^32; of a digest or nonce, by one bit."""
    changed = array.copy().reshape(-1)
    changed[place % changed.size] ^= (1 << amount % 8) if array.dtype == np.uint8 else amount
    return changed.reshape(array.shape)


amounts = st.integers(1, (1 << 63) - 1).filter(lambda amount: amount % (1 << 32))
OPERATIONS: dict[str, Callable[[Group, Shares, Shares], Any]] = {
    "open": lambda group, x, _y: group.attempt("auth_open", x),
    "mul": lambda group, x, y: group.attempt("auth_mul", x, y),
    "mul and divide": lambda group, x, y: group.attempt("auth_mul", x, y, divisor=10),
    "matmul": lambda group, x, y: group.attempt("auth_mul", x, y, op=MATRICES),
}


@settings(max_examples=150, deadline=None)
@given(
    count=st.integers(2, 4),
    cheater=st.integers(0, 3),
    operation=st.sampled_from(sorted(OPERATIONS)),
    message=st.integers(0, 1),
    part=st.integers(0, 2),
    place=st.integers(0, 50),
    amount=amounts,
)
def test_whoever_changes_a_message_is_named_and_there_is_no_result(
    count: int, cheater: int, operation: str, message: int, part: int, place: int, amount: int
) -> None:
    cheater %= count
    group = Group(count, NumpyKernels())
    x, y = share(group, np.arange(9).reshape(3, 3), 0), share(group, np.arange(9).reshape(3, 3), 1)
    sent: dict[int, int] = {}
    message = message if operation == "mul and divide" else 0  # The others consist of one opening.

    def alter(sender: int, receiver: int, payload: Any) -> Any:
        if sender != cheater or receiver == PROVIDER:
            return payload
        index = sent[receiver] = sent.get(receiver, -1) + 1
        if index != message:
            return payload
        *arrays, proof = payload
        arrays[part % len(arrays)] = change(arrays[part % len(arrays)], place, amount)
        return (*arrays, proof)

    group.alter = alter
    results, errors = OPERATIONS[operation](group, x, y)

    for honest in set(range(count)) - {cheater}:
        assert honest not in results
        assert type(errors[honest]) is CheatingError or "failed" in str(errors[honest])
    named = [error for rank, error in errors.items() if type(error) is CheatingError and rank != cheater]
    assert named
    assert all(f"worker 'party {cheater}' sent values that fail authentication" in str(error) for error in named)


@settings(max_examples=100, deadline=None)
@given(
    count=st.integers(2, 4),
    cheater=st.integers(0, 3),
    operation=st.sampled_from(sorted(OPERATIONS)),
    row=st.integers(0, 3),
    place=st.integers(0, 8),
    amount=amounts,
)
def test_whoever_changes_a_stored_share_or_tag_is_named(
    count: int, cheater: int, operation: str, row: int, place: int, amount: int
) -> None:
    cheater, row = cheater % count, row % count
    group = Group(count, NumpyKernels())
    x, y = share(group, np.arange(9).reshape(3, 3), 0), share(group, np.arange(9).reshape(3, 3), 1)
    x[cheater] = x[cheater].copy()
    x[cheater][row] = change(x[cheater][row], place, amount)  # Row 0 is the share, the next ones are the tags.

    results, errors = OPERATIONS[operation](group, x, y)

    deceived = [rank for rank in range(count) if rank != cheater]
    if row:
        deceived = deceived[row - 1 : row]  # Others were sent nothing wrong.
    for honest in deceived:
        assert honest not in results
    named = [error for error in errors.values() if type(error) is CheatingError]
    assert named
    assert all(f"'party {cheater}'" in str(error) for error in named)


@pytest.mark.parametrize("victim", [0, 2])
def test_an_owner_who_sends_different_inputs_to_the_parties_is_named(victim: int) -> None:
    group = Group(3, NumpyKernels())

    def alter(sender: int, receiver: int, payload: Any) -> Any:
        return (payload[0] + 1, *payload[1:]) if (sender, receiver) == (1, victim) else payload

    group.alter = alter
    zeros = np.zeros(4, "int64")
    results, errors = group.attempt("auth_input", [zeros] * 3, owner=1)

    assert type(errors[victim]) is CheatingError
    assert "'party 1'" in str(errors[victim])
    assert victim not in results


def test_changes_of_the_upper_bits_do_not_make_honest_parties_accuse_each_other() -> None:
    """A change by 2^63 passes the check with probability 1/2. The values are the lower bits, so it has no effect."""
    outcomes = set()
    for _ in range(40):
        group = Group(3, NumpyKernels())
        x, y = share(group, np.array([3]), 0), share(group, np.array([5]), 1)

        def alter(sender: int, receiver: int, payload: Any) -> Any:
            changed = (payload[0] ^ np.int64(-1 << 63), *payload[1:])
            return changed if (sender, receiver, len(payload)) == (0, 1, 4) else payload

        group.alter = alter
        results, errors = group.attempt("auth_mul", x, y)
        group.alter = None
        if errors:
            assert "'party 0'" in str(errors[1])
        else:
            assert reveal(group, [results[rank] for rank in range(3)]).tolist() == [15]
        outcomes.add(bool(errors))
    assert outcomes == {True, False}


def test_after_cheating_no_further_run_of_the_group_has_a_result() -> None:
    group = Group(3, NumpyKernels())
    x = share(group, np.arange(3))
    group.alter = lambda sender, receiver, payload: (
        (payload[0] + 1, *payload[1:]) if (sender, receiver) == (1, 0) else payload
    )
    group.attempt("auth_open", x)
    group.alter = None

    results, errors = group.attempt("auth_open", x)

    assert results.keys() <= {PROVIDER}
    for rank in (0, 1, 2):
        assert "worker 'party 1' sent values that fail authentication" in str(errors[rank])


# --- who may be blamed


@pytest.mark.parametrize("sender", [1, PROVIDER], ids=["a party", "the provider"])
@pytest.mark.parametrize("operation", [*sorted(OPERATIONS), "input"])
def test_nobody_is_accused_of_what_somebody_else_sent_in_their_name(operation: str, sender: int) -> None:
    """A client has tickets for all workers, and replaces what one of them sends. It does not know their seeds."""
    group = Group(3, NumpyKernels())
    x, y = share(group, np.arange(9).reshape(3, 3), 0), share(group, np.arange(9).reshape(3, 3), 1)

    def pose(by: int, to: int, payload: Any) -> Any:
        return tuple(change(array, 0, 3) for array in payload) if (by, to) == (sender, 0) else payload

    group.alter = pose
    if operation == "input":
        results, errors = group.attempt("auth_input", [np.zeros(4, "int64")] * 3, owner=1)
    else:
        results, errors = OPERATIONS[operation](group, x, y)

    assert 0 not in results
    assert not [error for error in errors.values() if isinstance(error, CheatingError)]
    name = "provider" if sender == PROVIDER else "party 1"
    assert f"what came in the name of party '{name}' does not belong to this run" in str(errors[0])
    assert group.channels[0].keys.cheating is None


@pytest.mark.parametrize("stranger", [1, PROVIDER], ids=["a party", "the provider"])
def test_nobody_is_accused_if_the_client_starts_different_calls(stranger: int) -> None:
    group = Group(2, NumpyKernels())
    x = share(group, np.arange(4))
    group.number += 1
    ended: dict[int, BaseException | None] = {}

    def start(rank: int, operand: Any) -> None:
        options = {"divisor": 7 if rank == stranger else 8}
        group._start(rank, "auth_truncate", [operand], options, lambda _, error: ended.update({rank: error}))

    start(PROVIDER, Spec((3, 4)))
    for rank in (0, 1):
        start(rank, x[rank])

    assert set(ended) >= {0, 1}
    assert not [error for error in ended.values() if isinstance(error, CheatingError)]
    assert all(channel.keys.cheating is None for channel in group.channels.values())


def test_a_client_that_mixes_up_shares_makes_a_party_accuse_an_innocent_one_and_the_error_says_so() -> None:
    group = Group(2, NumpyKernels())
    x, y = share(group, np.arange(4), 0), share(group, np.arange(4), 1)

    _, errors = group.attempt("auth_open", [x[0], y[1]])

    accusations = [str(error) for error in errors.values() if type(error) is CheatingError]
    assert accusations
    assert all("it cheats, or the client used shares that do not belong together" in text for text in accusations)


@pytest.mark.parametrize("name", ["auth_open", "auth_truncate", "auth_add_public", "auth_mul"])
def test_an_operand_without_the_rows_of_an_authenticated_share_is_refused_before_anything_is_sent(name: str) -> None:
    sent: list[Any] = []
    group = Group(2, NumpyKernels(), watch=lambda *message: sent.append(message))
    words = [np.zeros((2, 3), "int64")] * 2
    operands = [words] if name in ("auth_open", "auth_truncate") else [words, words]

    with pytest.raises(ValueError, match="cannot use a share of the shape .*: an authenticated one has 3 rows"):
        group.run(name, *operands, **({"divisor": 2} if name == "auth_truncate" else {}))

    assert not [payload for *_, payload in sent if type(payload) is tuple]


def test_a_message_of_another_form_names_its_sender() -> None:
    group = Group(2, NumpyKernels())
    x = share(group, np.arange(3))
    group.alter = lambda sender, receiver, payload: (
        (payload[0][:1], *payload[1:]) if (sender, receiver) == (1, 0) else payload
    )

    _, errors = group.attempt("auth_open", x)

    assert type(errors[0]) is ProtocolError
    assert "party 'party 1' sent arrays of another form" in str(errors[0])


def test_workers_compute_on_authenticated_shares_and_name_the_one_that_cheats(hook: Any) -> None:
    torch, sy = pytest.importorskip("torch"), pytest.importorskip("syft_core")
    bob, alice, carol = (sy.VirtualWorker(hook, id=f"{name} with tags") for name in ("bob", "alice", "carol"))
    workers = find_group(hook.local_worker, [bob, alice], carol, framework_of(torch.zeros(1)))

    def send(values: Any) -> Any:
        return {worker.id: below_wrapper(values.send(worker)) for worker in (bob, alice)}

    (x,) = workers.run(authenticated.auth_input, send(torch.tensor([1, 2, -3])), owner=0)
    (y,) = workers.run(authenticated.auth_input, send(torch.tensor([5, 6, 7])), owner=1)
    (z,) = workers.run(authenticated.auth_mul, x, y)
    (opened,) = workers.run(authenticated.auth_open, z)
    assert [pointer.get().tolist() for pointer in opened.values()] == [[5, 12, -21]] * 2

    x[bob.id][0].add_(1)  # Row 0 is bob's share.
    with pytest.raises(CheatingError, match="worker 'bob with tags' sent values that fail authentication"):
        workers.run(authenticated.auth_mul, x, y)
