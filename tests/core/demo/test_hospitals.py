from __future__ import annotations

import pytest

from syft_core.demo.hospitals import get_refusal


def test_an_expected_refusal_that_does_not_happen_fails_the_demo() -> None:
    with pytest.raises(AssertionError, match="the call succeeded"):
        get_refusal(lambda: None)
