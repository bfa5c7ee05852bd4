from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

from syft_privacy.gaussian_tails import inverse_log_erfc, log_erfc  # noqa: E402


def test_tails_are_exact_far_below_the_smallest_float() -> None:
    mpmath = pytest.importorskip("mpmath")
    for x in (-5.0, 0.0, 0.5, 4.0, 19.99, 20.01, 26.0, 100.0, 1e4):
        assert log_erfc(np.asarray(x)) == pytest.approx(float(mpmath.log(mpmath.erfc(x))), rel=1e-13, abs=1e-15)
        if x > -4:
            assert inverse_log_erfc(log_erfc(np.asarray(x))) == pytest.approx(x, rel=1e-12, abs=1e-12)
