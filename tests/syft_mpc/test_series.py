from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

from syft_mpc.series import SERIES  # noqa: E402

from .fit_series import FITS  # noqa: E402


@pytest.mark.parametrize("name", FITS)
def test_a_series_is_close_to_its_function(name: str) -> None:
    fit, series = FITS[name], SERIES[name]
    x = np.linspace(fit.low, fit.high, 5000)
    angles = 2 * np.pi / series.period * (x - series.middle)[:, None] * fit.multiples
    sums = np.full(len(x), series.constant)
    if series.cosines:
        sums = sums + np.cos(angles) @ np.array(series.cosines)
    if series.sines:
        sums = sums + np.sin(angles) @ np.array(series.sines)

    exact = fit.function(x)
    assert np.abs((sums - exact) / (np.abs(exact) if fit.relative else 1)).max() < 7e-7
