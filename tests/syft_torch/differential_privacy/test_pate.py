"""LNMax: the analysis of PySyft 0.2, with its reference values and without its defects."""

from __future__ import annotations

import copy
import io
import logging
import math
import pickle
import subprocess
import sys

import pytest

np = pytest.importorskip("numpy")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from syft_torch.differential_privacy import pate  # noqa: E402

from .votes import neighbours  # noqa: E402

COUNTS = [90, 5, 5]


def make_predictions() -> np.ndarray:
    """Return the predictions of the ancestor's test: 100 teachers, 50 queries, the first 10 unanimous."""
    random = np.random.RandomState(0)
    predictions = (random.rand(100, 50) * 10).astype(int)
    predictions[:, :10] = 0
    return predictions


def test_the_analysis_has_the_reference_values() -> None:
    dependent, independent = pate.perform_analysis(make_predictions(), np.arange(50), noise_eps=0.1)

    assert dependent == pytest.approx(6.884694, abs=1e-6)
    assert independent == pytest.approx(7.837642, abs=1e-6)
    assert dependent < independent


def test_the_parts_have_the_reference_values() -> None:
    assert pate.compute_q_noisy_max(COUNTS, 0.1) == pytest.approx(0.00106821, abs=1e-8)
    assert pate.compute_q_noisy_max_approx(COUNTS, 0.1) == pytest.approx(0.00106821, abs=1e-8)
    assert pate.logmgf_from_counts(COUNTS, 0.1, 8) == pytest.approx(0.00609809, abs=1e-8)
    assert pate.logmgf_exact(0.00106821, 0.2, 8) == pytest.approx(0.00609809, abs=1e-7)
    assert pate.sens_at_k(COUNTS, 0.1, 8, 3) == pytest.approx(0.00139909, abs=1e-8)
    assert pate.smoothed_sens(COUNTS, 0.1, 8, 0.09) == pytest.approx(0.00429132, abs=1e-8)


def test_arguments_have_the_names_and_order_of_pysyft() -> None:
    found = pate.perform_analysis(
        teacher_preds=make_predictions(), indices=np.arange(50), noise_eps=0.1, delta=1e-5, moments=8, beta=0.09
    )

    assert found[0] == pytest.approx(6.884694, abs=1e-6)
    assert pate.logmgf_exact(q=0.1, priv_eps=0.2, l=3) == pate.logmgf_exact(0.1, 0.2, 3)
    assert pate.sens_at_k(counts=COUNTS, noise_eps=0.1, l=2, k=1) == pate.sens_at_k(COUNTS, 0.1, 2, 1)


def test_lists_are_accepted() -> None:
    found = pate.perform_analysis(make_predictions().tolist(), list(range(50)), 0.1)

    assert found[0] == pytest.approx(6.884694, abs=1e-6)


def test_labels_in_place_of_positions_do_not_make_the_result_smaller(caplog: pytest.LogCaptureFixture) -> None:
    """Programs for PySyft 0.2 passed labels, and got an ε of 1.48 for queries that cost 6.88."""
    labels = (np.random.RandomState(1).rand(50) * 10).astype(int)

    with caplog.at_level(logging.WARNING):
        found, independent = pate.perform_analysis(make_predictions(), labels, 0.1)

    assert found == pytest.approx(6.884694, abs=1e-6)
    assert independent == pytest.approx(7.837642, abs=1e-6)
    assert "give labels as `labels=`" in caplog.text


def test_repeated_queries_are_paid_each_time() -> None:
    once, _ = pate.perform_analysis(make_predictions(), [20], 0.1)
    often, independent = pate.perform_analysis(make_predictions(), [20] * 200, 0.1)

    assert often > 5 * once
    assert often <= independent * (1 + 1e-12)


def test_positions_and_labels_are_separate() -> None:
    predictions, positions = make_predictions(), [3, 4, 5]

    some, _ = pate.perform_analysis(predictions, positions, 0.1, labels=[0, 0, 0])

    assert some == pate.perform_analysis(predictions[:, 3:6], None, 0.1, num_classes=10)[0]
    with pytest.raises(ValueError, match="cannot use 'labels': expected one for each answered query"):
        pate.perform_analysis(predictions, positions, 0.1, labels=[0, 0])
    with pytest.raises(ValueError, match="cannot use 'labels': it has labels outside of the classes"):
        pate.perform_analysis(predictions, positions, 0.1, labels=[0, 0, 10])


def test_classes_without_votes_count_if_their_number_is_given() -> None:
    few, _ = pate.perform_analysis([[0, 0]] * 50, None, 0.1)
    many, _ = pate.perform_analysis([[0, 0]] * 50, None, 0.1, num_classes=100)

    assert few < many


def test_labels_need_not_be_contiguous() -> None:
    assert pate.perform_analysis([[0, 7], [0, 7]], None, 0.1)[0] > 0


def test_the_counts_need_not_be_sorted() -> None:
    """The ancestor compared the first two counts as given, and returned 0 for these."""
    assert pate.sens_at_k([5, 90, 5], 0.1, 8, 3) == pate.sens_at_k(COUNTS, 0.1, 8, 3) > 0
    assert pate.smoothed_sens([5, 5, 90], 0.1, 8, 0.09) == pate.smoothed_sens(COUNTS, 0.1, 8, 0.09)


def test_numpy_and_torch_agree() -> None:
    torch = pytest.importorskip("torch")
    predictions, counts = torch.tensor(make_predictions()), torch.tensor(COUNTS)

    dependent, independent = pate.perform_analysis_torch(predictions, torch.arange(50), noise_eps=0.1, delta=1e-5)

    assert torch.isclose(dependent, torch.tensor(6.884694))
    assert torch.isclose(independent, torch.tensor(7.837642))
    pairs = [
        (pate.compute_q_noisy_max_torch(counts, 0.1), pate.compute_q_noisy_max(COUNTS, 0.1)),
        (pate.compute_q_noisy_max_approx_torch(counts, 0.1), pate.compute_q_noisy_max_approx(COUNTS, 0.1)),
        (pate.logmgf_exact_torch(torch.tensor(0.1), 0.2, 8), pate.logmgf_exact(0.1, 0.2, 8)),
        (pate.logmgf_from_counts_torch(counts, 0.1, 8), pate.logmgf_from_counts(COUNTS, 0.1, 8)),
        (pate.sens_at_k_torch(counts, 0.1, 8, 3), pate.sens_at_k(COUNTS, 0.1, 8, 3)),
        (pate.smooth_sens_torch(counts, 0.1, 8, 0.09), pate.smoothed_sens(COUNTS, 0.1, 8, 0.09)),
    ]
    for found, expected in pairs:
        assert isinstance(found, torch.Tensor)
        assert torch.isclose(found, torch.tensor(expected))
    assert pate.tensors_to_literals([torch.tensor(1.5), torch.tensor([2]), 3]) == [1.5, 2.0, 3]


def test_the_tensor_of_a_data_dependent_epsilon_does_not_print() -> None:
    torch = pytest.importorskip("torch")
    dependent, independent = pate.perform_analysis_torch(make_predictions(), torch.arange(50))

    for text in (repr(dependent), str(dependent), f"{dependent}", f"{dependent:.2f}", repr(dependent * 2)):
        assert "not for release" in text
        assert "6.8" not in text
    assert "7.8" in repr(independent)


def test_the_tensor_of_a_data_dependent_epsilon_is_not_converted_stored_or_sent() -> None:
    torch = pytest.importorskip("torch")
    dependent, _ = pate.perform_analysis_torch(make_predictions(), torch.arange(50))

    for attempt in (
        pickle.dumps,
        copy.deepcopy,
        np.asarray,
        lambda x: x.numpy(),
        lambda x: torch.save(x, io.BytesIO()),
    ):
        with pytest.raises(TypeError, match="cannot convert, store or send .* not for release; write `float"):
            attempt(dependent)
    for text in map(repr, (dependent.item(), dependent.tolist(), pate.tensors_to_literals([dependent]))):
        assert "not for release" in text
        assert "6.8" not in text
    assert float(dependent) == pytest.approx(6.884694, abs=1e-6)


def test_the_ancestors_own_tests_pass() -> None:
    """They pass labels as ``indices``, compare the results, and make a tensor of one."""
    torch = pytest.importorskip("torch")
    predictions, labels = make_predictions(), (np.random.RandomState(1).rand(50) * 10).astype(int)

    dependent, independent = pate.perform_analysis(teacher_preds=predictions, indices=labels, noise_eps=0.1, delta=1e-5)
    as_tensors = pate.perform_analysis_torch(torch.tensor(predictions), torch.tensor(labels), noise_eps=0.1, delta=1e-5)

    assert dependent < independent
    assert as_tensors[0] < as_tensors[1]
    assert torch.isclose(as_tensors[0], torch.tensor(dependent, dtype=torch.float32))
    assert torch.isclose(as_tensors[1], torch.tensor(independent, dtype=torch.float32))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "bfloat16", "float64"])
def test_tensors_of_any_type_are_read(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    counts = torch.tensor(COUNTS).to(getattr(torch, dtype)).requires_grad_("float" in dtype)

    assert float(pate.compute_q_noisy_max_torch(counts, 0.1)) == pytest.approx(0.00106821, abs=1e-8)


def test_tensors_without_readable_elements_are_refused_by_name() -> None:
    torch = pytest.importorskip("torch")
    for counts in (torch.tensor(COUNTS).to_sparse(), torch.zeros(3, device="meta")):
        with pytest.raises(TypeError, match="cannot use 'counts': expected numbers"):
            pate.compute_q_noisy_max_torch(counts, 0.1)


@pytest.mark.parametrize("gamma", [1e-50, 5.0, 400.0, 1e10])
def test_any_amount_of_noise_has_a_finite_loss(gamma: float) -> None:
    dependent, independent = pate.perform_analysis(make_predictions(), None, gamma)

    assert 0 < dependent <= independent < math.inf
    assert 0 <= pate.logmgf_from_counts(COUNTS, gamma, 8) < math.inf


def test_a_warning_does_not_depend_on_the_votes(caplog: pytest.LogCaptureFixture) -> None:
    texts = []
    for predictions in (make_predictions(), np.zeros((100, 50), int)):
        caplog.clear()
        pate.perform_analysis(predictions, None, 0.1, num_classes=10)
        texts.append(caplog.messages)

    assert texts[0] == texts[1]


@settings(max_examples=40)
@given(
    counts=st.lists(st.integers(0, 40), min_size=2, max_size=5), gamma=st.floats(0.01, 2.0), moment=st.integers(1, 20)
)
def test_the_exact_divergence_of_laplace_votes_never_exceeds_the_bound(
    counts: list[int], gamma: float, moment: int
) -> None:
    here = answer(counts, gamma)
    bound = pate.logmgf_from_counts(counts, gamma, moment)

    for moved in neighbours(counts):
        there = answer(moved, gamma)
        loss = math.log(float(np.sum(here * np.exp(moment * (np.log(here) - np.log(there))))))
        assert loss <= bound + 1e-5 * max(1.0, bound)  # the precision of the quadrature


def answer(counts: list[int], gamma: float) -> np.ndarray:
    """Compute the probability of each answer of LNMax by quadrature; its noise has the scale 1 / γ."""
    edge, parts = math.ceil(40 / gamma), 2 * math.ceil(16 * gamma)
    x = np.arange((min(counts) - edge) * parts, (max(counts) + edge) * parts + 1) / parts  # Kinks are at even places.
    z = (x[None] - np.asarray(counts, dtype=float)[:, None]) * gamma
    below = np.where(z < 0, np.exp(np.minimum(z, 0)) / 2, 1 - np.exp(-np.maximum(z, 0)) / 2)
    simpson = np.where(np.arange(len(x)) % 2, 4.0, 2.0) / (3 * parts)
    chances = np.asarray(
        [
            np.sum(simpson * gamma * np.exp(-np.abs(z[place])) / 2 * np.prod(np.delete(below, place, 0), axis=0))
            for place in range(len(counts))
        ]
    )
    return np.maximum(chances, 1e-300)


def test_the_loss_of_laplace_votes_cannot_be_released() -> None:
    dependent, _ = pate.perform_analysis(make_predictions(), np.arange(50), 0.1)

    with pytest.raises(ValueError, match="cannot release: no smooth sensitivity is proven for LNMax; use GNMax"):
        dependent.release(order=4, noise=10.0)


def test_tiny_probabilities_are_not_lost() -> None:
    assert pate.logmgf_from_counts([5000, 0], 0.1, 8) == pytest.approx(
        pate.compute_q_noisy_max([5000, 0], 0.1) * (math.expm1(1.6) + 8 * math.expm1(0.2)), rel=1e-6
    )


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("teacher_preds", [[0, -1]], ValueError),
        ("teacher_preds", [[0, 0.5]], ValueError),
        ("teacher_preds", [0, 1], ValueError),
        ("teacher_preds", [[]], ValueError),
        ("teacher_preds", [[0], [1, 2]], TypeError),
        ("teacher_preds", [["a"]], TypeError),
        ("indices", [2], ValueError),
        ("indices", [-1], ValueError),
        ("indices", [0.5], ValueError),
        ("indices", [[0]], ValueError),
        ("noise_eps", 0, ValueError),
        ("noise_eps", -0.1, ValueError),
        ("noise_eps", math.nan, ValueError),
        ("delta", 1, ValueError),
        ("delta", 0, ValueError),
        ("moments", 0, ValueError),
        ("moments", 1.5, ValueError),
        ("beta", 0, ValueError),
        ("moments", 10**9, ValueError),
        ("num_classes", 1, ValueError),
        ("teacher_preds", [[2**40]], ValueError),
    ],
)
def test_bad_arguments_are_refused_by_name(name: str, value: object, error: type[Exception]) -> None:
    good = {"teacher_preds": [[0, 0], [0, 0]], "indices": [0, 1], "noise_eps": 0.1}

    with pytest.raises(error, match=f"cannot .*'{name}'"):
        pate.perform_analysis(**{**good, name: value})


def test_labels_outside_of_the_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot use 'teacher_preds': it has labels outside of the classes; .* 0 to 2"):
        pate.perform_analysis([[0, 3]], None, 0.1, num_classes=3)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: pate.compute_q_noisy_max([-1, 2], 0.1), "counts"),
        (lambda: pate.compute_q_noisy_max([[1, 2]], 0.1), "counts"),
        (lambda: pate.compute_q_noisy_max([1], 0.1), "counts"),
        (lambda: pate.compute_q_noisy_max([1, 2], 0), "noise_eps"),
        (lambda: pate.logmgf_exact(1.5, 0.1, 2), "q"),
        (lambda: pate.logmgf_exact(0.5, 0, 2), "priv_eps"),
        (lambda: pate.logmgf_exact(0.5, 0.1, 0), "l"),
        (lambda: pate.sens_at_k([1, 2], 0.1, 2, -1), "k"),
        (lambda: pate.sens_at_k([1, 2], 0.1, 21, 0), "l"),
        (lambda: pate.smoothed_sens([1, 2], 0.1, 2, 0), "beta"),
    ],
)
def test_bad_arguments_of_the_parts_are_refused_by_name(call, name: str) -> None:
    with pytest.raises(ValueError, match=f"cannot .*'{name}'"):
        call()


def test_the_analysis_needs_only_numpy() -> None:
    program = "import sys, syft_torch.differential_privacy.pate; print('torch' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)

    assert done.stdout == "False\n"
