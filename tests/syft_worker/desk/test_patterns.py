"""Patterns: the forms that a rule of the owner lets leave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syft_worker.desk.patterns import cover, describe_forms, parse_forms

COVERED = [
    ("Tensor[]", "Tensor[]"),
    ("Tensor[3, 4]", "Tensor[3, 4]"),
    ("Tensor[3,4]", "Tensor[3, 4]"),
    ("Tensor[*]", "Tensor[1000000]"),
    ("Tensor[*, 4]", "Tensor[9, 4]"),
    ("Tensor[...]", "Tensor[]"),
    ("Tensor[...]", "Tensor[1, 2, 3]"),
    ("Tensor[2, ..., 3]", "Tensor[2, 3]"),
    ("Tensor[2, ..., *]", "Tensor[2, 7, 7, 7]"),
    ("Tensor[2] int64", "Tensor[2] int64"),
    ("Tensor[2] float32 sparse_coo", "Tensor[2] float32 sparse_coo"),
    ("FixedPrecisionTensor>Tensor[2] int64", "FixedPrecisionTensor>Tensor[2] int64"),
    ("Parameter[10, *], Parameter[*]", "Parameter[10, 64], Parameter[10]"),
]
NOT_COVERED = [
    ("Tensor[*]", "Tensor[2, 3]"),
    ("Tensor[*]", "Tensor[]"),
    ("Tensor[*, *]", "Tensor[3]"),
    ("Tensor[3, 4]", "Tensor[4, 3]"),
    ("Tensor[12]", "Tensor[1, 2]"),
    ("Tensor[2, ..., 3]", "Tensor[3]"),
    ("Tensor[2, ..., 2]", "Tensor[2]"),
    ("Tensor[2]", "Tensor[2] float64"),
    ("Tensor[2]", "Tensor[2] complex128"),
    ("Tensor[2]", "Tensor[2] float32 sparse_coo"),
    ("Tensor[2] float32", "Tensor[2] float32 sparse_coo"),
    ("Tensor[2] float64", "Tensor[2]"),
    ("Tensor[2]", "Parameter[2]"),
    ("Tensor[2]", "PrivateTensor>Tensor[2]"),
    ("Tensor[2]", "Tensor[2], Tensor[2]"),
    ("Tensor[2], Tensor[2]", "Tensor[2]"),
    ("Tensor[2], Parameter[2]", "Parameter[2], Tensor[2]"),
    ("Tensor[2]", "Tensor[2] of noisy_max(epsilon=1) among 3 parties"),
    ("Tensor[2]", "Tensor"),
    ("Tensor[2]", "AdditiveSharingTensor of 3"),
    ("Tensor[2]", "→ bob:Tensor[2]"),
    ("Tensor[...]", "NestedTensor[2, j1] float32 jagged"),
    ("Tensor[2]", ""),
]


@pytest.mark.parametrize(("wanted", "forms"), COVERED)
def test_a_pattern_covers_forms_of_its_types_sizes_and_dtypes(wanted: str, forms: str) -> None:
    assert cover(wanted, forms)


@pytest.mark.parametrize(("wanted", "forms"), NOT_COVERED)
def test_a_pattern_covers_nothing_else(wanted: str, forms: str) -> None:
    assert not cover(wanted, forms)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Tensor[1*]", r"'1\*' is not a size; write a number, '\*' for one size, or '...' for any number of sizes"),
        ("Tensor[**]", r"'\*\*' is not a size"),
        ("Tensor[-1]", "'-1' is not a size"),
        ("Tensor[٣]", "'٣' is not a size"),
        ("Tensor[2,]", "'' is not a size"),
        ("Tensor[" + "9" * 5000 + "]", "is not a size"),
        ("Tensor[..., ...]", "'...' stands for any number of sizes; write it once"),
        ("Tensor", "'Tensor' is not a form; write it as `syft-core requests` shows it"),
        ("Tensor[2", "is not a form"),
        ("[2]", "is not a form"),
        ("Tensor[2];", "';' is not part of a form"),
        ("Tensor[2], ", "'' is not a form"),
        ("Tensor[2],Tensor[3]", "is not part of a form"),
        ("Tensor[2] int64 sparse_coo more", "' more' is not part of a form"),
        ("Tensor[2] of votes(x=1)", "a rule cannot require a protocol; leave out ' of …'"),
        ("Tensor[2]\x1b[2J", "is not part of a form"),
    ],
)
def test_anything_else_is_not_a_form_and_the_error_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_forms(text)


@pytest.mark.parametrize("text", ["Tensor[" + "*, " * 50_000 + "*]", "A>" * 100_000, "Tensor[2], " * 20_000 + "!"])
def test_long_patterns_are_read_in_time_that_grows_with_their_length(text: str) -> None:
    forms = "Tensor[" + "1, " * 50_000 + "x]"

    assert not _parses(text) or not cover(text, forms)  # A minute, if it tried all ways to match.


def _parses(text: str) -> bool:
    try:
        parse_forms(text)
    except ValueError:
        return False
    return True


@given(st.text(alphabet="Tensor[]*.,> 0123456789int", max_size=60))
def test_what_can_be_read_means_the_same_after_it_was_written(text: str) -> None:
    try:
        patterns = parse_forms(text)
    except ValueError:
        return

    written = ", ".join([f"{p.types}[{', '.join(p.sizes)}] {p.words}".strip() for p in patterns])
    assert parse_forms(written) == patterns


def test_a_form_without_a_dtype_is_shown_with_what_that_means() -> None:
    assert describe_forms("Tensor[*], Parameter[2] int64") == "Tensor[*] (default float), Parameter[2] int64"
