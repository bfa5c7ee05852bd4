"""GNMax and Confident-GNMax: reference values, exact divergences, and what must not change the results."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

np = pytest.importorskip("numpy")

from hypothesis import assume, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from syft_privacy.epsilon import convert  # noqa: E402
from syft_torch.differential_privacy import pate  # noqa: E402

from ..syft_torch.differential_privacy.votes import (  # noqa: E402
    complete,
    counts,
    divergence,
    log_probabilities,
    neighbours,
    orders,
    sigmas,
)

ORACLE = [
    (40, [250] + 9 * [0], -10.0192282943, [1.52735726276e-5, 2.05891332994e-5, 5.3213177518e-5, 2.03454987624e-4]),
    (40, [200, 30, 20] + 7 * [0], -5.65994597848,
     [8.79657829668e-4, 1.08564173149e-3, 1.99555075533e-3, 4.56504949682e-3]),
    (40, [130, 120] + 8 * [0], -0.661518745488, [1.25e-3, 5e-3, 1.25e-2, 2e-2]),
    (100, [4900, 100] + 8 * [0], -580.444432133,
     [1.02082599097e-252, 3.82997683867e-252, 4.11876685211e-250, 8.19141425795e-248]),
    (5, [9, 1, 0], -1.46752432375, [0.08, 0.32, 0.8, 1.28]),
]  # fmt: skip
"""sigma, votes, log q, and the Rényi bound at the orders 2, 8, 20 and 32."""
FAR = -300.0
"""Where the quadrature would lose digits."""


@pytest.mark.parametrize(("sigma", "votes", "log_q", "rdp"), ORACLE)
def test_the_bounds_have_the_reference_values(sigma: float, votes: list[int], log_q: float, rdp: list[float]) -> None:
    assert pate.log_q_gaussian(votes, sigma) == pytest.approx(log_q, rel=1e-10)
    np.testing.assert_allclose(pate.rdp_gnmax(votes, sigma, [2, 8, 20, 32]), rdp, rtol=1e-9)


@settings(max_examples=60)
@given(
    votes=st.lists(st.integers(0, 5000), min_size=2, max_size=10),
    sigma=st.floats(-1.0, 4.0).map(lambda digits: 10.0**digits),
    order=st.floats(-15.0, 5.0).map(lambda digits: 1 + 10.0**digits),
)
def test_the_bound_is_that_of_theorem_6_with_hundreds_of_digits(votes: list[int], sigma: float, order: float) -> None:
    mp = pytest.importorskip("mpmath")
    with mp.workdps(400):
        first, *others = sorted(map(mp.mpf, votes), reverse=True)
        s, a = mp.mpf(sigma), mp.mpf(order)
        q = min(sum(mp.erfc((first - count) / (2 * s)) / 2 for count in others), 1 - mp.mpf(1) / len(votes))
        mu_2 = s * mp.sqrt(-mp.log(q))
        mu_1 = mu_2 + 1
        e_1, e_2 = mu_1 / s**2, mu_2 / s**2
        expected = a / s**2
        if a <= mu_1 and mu_2 > 1:
            limit = mp.exp((mu_2 - 1) * e_2) / (mu_1 / (mu_1 - 1) * mu_2 / (mu_2 - 1)) ** mu_2
            if q <= min(limit, mp.exp(-e_2)):
                left = (1 - q) / (1 - (q * mp.exp(e_2)) ** ((mu_2 - 1) / mu_2))
                right = mp.exp(e_1) / q ** (1 / (mu_1 - 1))
                expected = min(expected, mp.log((1 - q) * left ** (a - 1) + q * right ** (a - 1)) / (a - 1))
        assume(expected > mp.mpf(10) ** -290)

        assert pate.rdp_gnmax(votes, sigma, order) == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize(
    ("votes", "sigma", "order", "rdp"),
    [
        ([246, 4], 124.55330529888037, 1.0000000000000022, 6.445987900931819e-05),
        ([250, 0], 0.6088827912240126, 67.56776866609617, 43.85745936280124),
    ],
    ids=["an order near 1", "a large loss"],
)
def test_the_bound_is_exact_at_the_ends_of_the_range(votes: list[int], sigma: float, order: float, rdp: float) -> None:
    assert pate.rdp_gnmax(votes, sigma, order) == pytest.approx(rdp, rel=1e-9)


def test_queries_and_orders_are_computed_at_once_as_one_by_one() -> None:
    rows = [votes for _, votes, *_ in ORACLE[:4]]
    together = pate.rdp_gnmax(rows, 40, [1.5, 8, 100])

    assert together.shape == (4, 3)
    for row, found in zip(rows, together, strict=True):
        np.testing.assert_array_equal([pate.rdp_gnmax(row, 40, order) for order in (1.5, 8, 100)], found)


def test_the_smooth_sensitivity_has_the_reference_value() -> None:
    found = pate.smooth_sensitivity_gnmax([240, 10] + 8 * [0], 40, 0.02, 20)

    assert found == pytest.approx(2.334573039e-4, rel=1e-9)


@settings(max_examples=25)
@given(votes=counts, sigma=sigmas, order=orders)
def test_the_exact_divergence_from_neighbouring_votes_never_exceeds_the_bound(
    votes: list[int], sigma: float, order: float
) -> None:
    bound = float(pate.rdp_gnmax(votes, sigma, order))
    here = log_probabilities(votes, sigma)
    others = np.delete(here, int(np.argmax(votes)))

    assert np.logaddexp.reduce(others) <= pate.log_q_gaussian(votes, sigma) + 1e-6
    for moved in neighbours(votes):
        there = log_probabilities(moved, sigma)
        if min(here.min(), there.min()) > FAR:
            assert divergence(here, there, order) <= bound * (1 + 1e-6) + 1e-15


@settings(max_examples=40)
@given(largest=st.integers(0, 300), threshold=st.integers(1, 300), sigma=sigmas, order=orders)
def test_the_exact_divergence_of_the_threshold_test_never_exceeds_the_bound(
    largest: int, threshold: int, sigma: float, order: float
) -> None:
    def chances(count: int) -> np.ndarray:
        distance = (count - threshold) / (sigma * math.sqrt(2))
        return complete(np.asarray([math.erfc(-distance) / 2, math.erfc(distance) / 2]))

    bound = float(pate.rdp_threshold([largest, 0], threshold, sigma, order))
    here = chances(largest)

    for count in (largest - 1, largest + 1):
        there = chances(count)
        if min(here.min(), there.min()) > FAR:
            assert divergence(here, there, order) <= bound * (1 + 1e-6) + 1e-15


@settings(max_examples=40)
@given(votes=counts, sigma=sigmas, order=orders, factor=st.floats(1.01, 4.0))
def test_more_noise_costs_less_and_higher_orders_cost_more(
    votes: list[int], sigma: float, order: float, factor: float
) -> None:
    here = float(pate.rdp_gnmax(votes, sigma, order))

    assert here >= 0
    assert here <= order / sigma**2
    assert float(pate.rdp_gnmax(votes, sigma, order * factor)) >= here * (1 - 1e-12)
    # The bound for all votes falls with sigma, and a certain answer is less certain with more noise.
    assert float(pate.rdp_gnmax([50, 50], sigma * factor, order)) <= float(pate.rdp_gnmax([50, 50], sigma, order))


@settings(max_examples=20)
@given(votes=st.lists(st.tuples(*[st.integers(0, 60)] * 4), min_size=1, max_size=6), sigma=sigmas)
def test_more_queries_cost_more(votes: list[tuple[int, ...]], sigma: float) -> None:
    costs = [float(pate.epsilon_gnmax(votes[: end + 1], sigma, 1e-5)) for end in range(len(votes))]

    assert all(later >= earlier * (1 - 1e-12) for earlier, later in pairwise(costs))


@settings(max_examples=20)
@given(votes=counts, sigma=sigmas, order=orders, data=st.data())
def test_the_order_of_classes_does_not_matter(
    votes: list[int], sigma: float, order: float, data: st.DataObject
) -> None:
    moved = data.draw(st.permutations(votes))

    assert pate.log_q_gaussian(moved, sigma) == pytest.approx(pate.log_q_gaussian(votes, sigma), rel=1e-12)
    assert pate.rdp_gnmax(moved, sigma, order) == pytest.approx(pate.rdp_gnmax(votes, sigma, order), rel=1e-9)
    assert pate.rdp_threshold(moved, 30, sigma, order) == pate.rdp_threshold(votes, 30, sigma, order)


@settings(max_examples=40)
@given(votes=counts, sigma=st.floats(8.0, 60.0), order=st.floats(2.0, 20.0), beta=st.floats(0.001, 0.2))
def test_a_moved_vote_changes_the_bound_by_no_more_than_the_smooth_sensitivity(
    votes: list[int], sigma: float, order: float, beta: float
) -> None:
    here = float(pate.rdp_gnmax(votes, sigma, order))
    try:
        smooth = float(pate.smooth_sensitivity_gnmax(votes, sigma, beta, order))
    except ValueError:
        assume(False)

    for moved in neighbours(votes):
        assert abs(float(pate.rdp_gnmax(moved, sigma, order)) - here) <= smooth * (1 + 1e-9) + 1e-15
        # It is smooth: from one vote to the next, it changes by a factor of e^β at most.
        there = float(pate.smooth_sensitivity_gnmax(moved, sigma, beta, order))
        assert there <= smooth * math.exp(beta) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("sigma", [20.0, 40.0, 100.0])
def test_a_moved_vote_changes_epsilon_by_no_more_than_the_smooth_sensitivities_of_all_queries(sigma: float) -> None:
    order, beta, delta = 8.0, 0.04, 1e-5
    random = np.random.default_rng(0)
    votes = random.multinomial(100, random.dirichlet(np.full(5, 0.2), 20))
    moved = votes.copy()
    for row in moved:  # One teacher votes differently on every query.
        first, second = np.argsort(row)[::-1][:2]
        row[first] -= 1
        row[second] += 1

    def epsilon(rows: np.ndarray) -> float:
        total = np.sum(pate.rdp_gnmax(rows, sigma, order))
        return float(convert(total, np.asarray(order), delta, "improved"))

    assert abs(epsilon(votes) - epsilon(moved)) <= np.sum(pate.smooth_sensitivity_gnmax(votes, sigma, beta, order))


@settings(max_examples=40)
@given(votes=counts, sigma=st.floats(0.5, 60.0), order=st.floats(1.1, 20.0), beta=st.floats(0.001, 0.2), data=st.data())
def test_a_teacher_that_does_not_vote_changes_no_more_than_the_smooth_sensitivity(
    votes: list[int], sigma: float, order: float, beta: float, data: st.DataObject
) -> None:
    without = list(votes)
    without[data.draw(st.sampled_from([label for label, count in enumerate(votes) if count]))] -= 1

    try:
        here, there = map(float, pate.smooth_sensitivity_gnmax([votes, without], sigma, beta, order))
    except ValueError:
        assume(False)

    change = abs(float(pate.rdp_gnmax(votes, sigma, order)) - float(pate.rdp_gnmax(without, sigma, order)))
    assert change <= min(here, there) * (1 + 1e-9) + 1e-15
    assert max(here, there) <= min(here, there) * math.exp(beta) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(
    ("votes", "moved", "sigma", "order"),
    [([184, 0, 66], [184, 0, 65], 0.83, 26.6), ([199, 50, 1], [198, 50, 2], 1.09, 50.8)],
)
def test_the_smooth_sensitivity_at_high_orders_is_smooth(
    votes: list[int], moved: list[int], sigma: float, order: float
) -> None:
    """At high orders, the bound changes where q is far below the smallest float."""
    here, there = map(float, pate.smooth_sensitivity_gnmax([votes, moved], sigma, 0.4 / order, order))

    assert 0 < max(here, there) <= min(here, there) * math.exp(0.4 / order) * (1 + 1e-9)


def test_smooth_sensitivity_is_refused_where_it_cannot_be_computed() -> None:
    with pytest.raises(ValueError, match="cannot bound the smooth sensitivity: .*; use a lower order"):
        pate.smooth_sensitivity_gnmax([9, 1], 20, 0.1, 1e9)
    assert pate.smooth_sensitivity_gnmax([9, 1], 0.01, 0.1, 2.0) > 0


def test_the_votes_of_teachers_that_did_not_vote_are_at_a_distance() -> None:
    """With (4, 0, 0) a vote decides; with (3, 0, 0) it does not yet, but one more teacher may vote."""
    none, few, some = map(float, pate.smooth_sensitivity_gnmax([[0, 0, 0], [3, 0, 0], [4, 0, 0]], 2.0, 0.01, 2.0))

    assert few >= some * math.exp(-0.01) * (1 - 1e-12) > 0
    assert none >= some * math.exp(-0.04) * (1 - 1e-12)


def test_much_noise_and_many_votes_are_answered_or_refused() -> None:
    assert pate.smooth_sensitivity_gnmax([900_000, 50_000], 1e5, 0.001, 2.0) > 0
    with pytest.raises(ValueError, match="cannot bound the smooth sensitivity: 'votes' has a row of more than"):
        pate.smooth_sensitivity_gnmax([10**9, 0], 40, 0.1, 2.0)


def test_where_the_conditions_of_theorem_6_fail_the_bound_is_the_one_for_all_votes() -> None:
    assert pate.rdp_gnmax([130, 120], 40, 8) == 8 / 40**2  # q is too large.
    assert pate.rdp_gnmax([250, 0], 40, 500) == 500 / 40**2  # The order is above μ1.
    assert pate.rdp_gnmax([9, 1], 0.2, 2) < 1e-70
    assert pate.rdp_gnmax([1, 0], 0.5, 2) == 2 / 0.5**2  # μ2 is below 1.


def test_certain_answers_cost_nothing_and_raise_no_warning() -> None:
    assert pate.rdp_gnmax([10**6, 0], 1e-3, 2) == 0
    assert pate.rdp_threshold([10**6, 0], 10, 1e-3, 2) == 0


def test_every_query_pays_for_the_test_and_only_answers_pay_for_the_answer() -> None:
    votes = np.asarray([[90, 10], [60, 40], [51, 49]])
    answered = np.asarray([True, True, False])
    options = {"threshold": 70, "threshold_sigma": 30}
    grid = np.asarray([2.0, 5.0, 20.0])

    found = pate.epsilon_gnmax(votes, 20, 1e-5, answered=answered, **options)
    total = pate.rdp_threshold(votes, 70, 30, grid).sum(0) + pate.rdp_gnmax(votes[:2], 20, grid).sum(0)

    np.testing.assert_allclose(found._curve.rdp(grid), total)
    np.testing.assert_allclose(found._curve.independent(grid), 3 * grid / (2 * 30**2) + 2 * grid / 20**2)
    refused = pate.epsilon_gnmax(votes, 20, 1e-5, answered=[False] * 3, **options)
    assert 0 < refused < found
    assert found < pate.epsilon_gnmax(votes, 20, 1e-5, **options)


def test_the_best_order_is_found() -> None:
    votes = np.asarray([[90, 10, 0]] * 30)
    grid = 1 + np.exp(np.linspace(-4, 8, 20_000))
    for conversion in ("classic", "improved"):
        found = pate.epsilon_gnmax(votes, 30, 1e-6, conversion)
        best = convert(pate.rdp_gnmax(votes, 30, grid).sum(0), grid, 1e-6, conversion).min()

        assert found.conversion == found.independent.conversion == conversion
        assert best <= float(found) <= best * 1.001
    assert float(found) < float(pate.epsilon_gnmax(votes, 30, 1e-6, "classic"))


@pytest.mark.parametrize(("sigma", "queries"), [(40.0, 1), (40.0, 100), (10.0, 1000)])
def test_the_epsilon_for_all_votes_is_that_of_dp_accounting(sigma: float, queries: int) -> None:
    accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    grid = [1 + x / 10 for x in range(1, 5000)]
    # A moved vote changes two counts by 1.
    event = accounting.GaussianDpEvent(sigma / math.sqrt(2))

    theirs = rdp.RdpAccountant(grid).compose(event, queries)
    ours = pate.epsilon_gnmax([[1, 1]] * queries, sigma, 1e-5).independent

    assert ours.epsilon == pytest.approx(theirs.get_epsilon(1e-5), rel=1e-3)
    exact = convert(queries * np.asarray(grid) / sigma**2, np.asarray(grid), 1e-5, "improved").min()
    assert exact == pytest.approx(theirs.get_epsilon(1e-5), rel=1e-9)


def test_discrete_noise_is_charged_for_its_steps() -> None:
    votes = [200, 30, 20]

    assert pate.log_q_gaussian(votes, 40, step=1 / 1024) > pate.log_q_gaussian(votes, 40)
    assert pate.rdp_gnmax(votes, 40, 8, step=1 / 1024) == pytest.approx(pate.rdp_gnmax(votes, 40, 8), rel=1e-3)


GOOD = {"votes": [[3, 1], [2, 2]], "sigma": 2.0, "delta": 1e-5}


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("votes", [[-1, 2]], ValueError),
        ("votes", [[0.5, 2]], ValueError),
        ("votes", [[math.nan, 2]], ValueError),
        ("votes", [[math.inf, 2]], ValueError),
        ("votes", [[1], [2]], ValueError),
        ("votes", [], ValueError),
        ("votes", 3, ValueError),
        ("votes", [[[1, 2]]], ValueError),
        ("votes", [[1, 2], [3]], TypeError),
        ("votes", [["a", "b"]], TypeError),
        ("votes", None, TypeError),
        ("sigma", 0, ValueError),
        ("sigma", -1.0, ValueError),
        ("sigma", math.nan, ValueError),
        ("sigma", math.inf, ValueError),
        ("sigma", [1.0, 2.0], ValueError),
        ("sigma", "2", TypeError),
        ("delta", 0, ValueError),
        ("delta", 1, ValueError),
        ("delta", 1.5, ValueError),
        ("delta", -1e-5, ValueError),
        ("conversion", "best", ValueError),
        ("threshold", 10, ValueError),
        ("threshold_sigma", 10, ValueError),
        ("answered", [True], ValueError),
        ("answered", [1, 0], ValueError),
        ("step", -1, ValueError),
    ],
)
def test_bad_arguments_are_refused_by_name(name: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"cannot .*'{name}'.*"):
        pate.epsilon_gnmax(**{**GOOD, name: value})


@pytest.mark.parametrize("orders", [1, 0.5, [], [2, 1], math.inf, math.nan, [[2, 3]]])
def test_orders_must_be_above_one(orders: object) -> None:
    with pytest.raises(ValueError, match="cannot use 'orders': expected a number above 1, or a list of them"):
        pate.rdp_gnmax([3, 1], 2, orders)


def test_errors_do_not_contain_values() -> None:
    with pytest.raises(ValueError, match="votes") as caught:
        pate.rdp_gnmax([-123456, 7], 2, 2)

    assert "123456" not in str(caught.value)
