"""The lists of the backends contain existing operations, and together all that the core needs to know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import syft_numpy.facts
import syft_torch.facts
from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.attributes import FrameworkAttributes, describe_op, words
from syft_core.hook.facts import WRITES_ALL
from syft_numpy.attributes import NumpyAttributes
from syft_torch.attributes import TorchAttributes

from ..surface.exceptions import REFERENCE

FAMILIES = words(
    "ARITHMETIC COMPARISONS REDUCTIONS PRODUCTS LINEAR_ALGEBRA TRANSFORMS LAYERS ACTIVATIONS LOSSES SHAPES INDEXING "
    "CREATION AUTOGRAD OPTIMIZERS"
)
OF_OTHER_VERSIONS = words(
    "in1d trapz itemset _reshape_alias is_ipu has_names is_maia tostring cudnn_batch_norm array torch.linalg.polar"
)


@pytest.fixture(params=["torch", "numpy"])
def backend(request: pytest.FixtureRequest) -> tuple[FrameworkAttributes, Any]:
    if request.param == "torch":
        return TorchAttributes(torch), syft_torch.facts
    return NumpyAttributes(np), syft_numpy.facts


def test_every_name_in_a_list_is_an_operation(backend: tuple[FrameworkAttributes, Any]) -> None:
    attributes, facts = backend
    if not attributes.framework.__version__.startswith(REFERENCE[attributes.ALIAS] + "."):
        pytest.skip("the lists are exact for another version")
    known = {name for op in attributes.ops for name in (op.attr, op.operation, op.name)}
    lists = {name: value for name, value in vars(facts).items() if name.isupper() and isinstance(value, frozenset)}
    of_arguments = {"NUMBERS", "WRITES_FIRST", "_FIRST"}

    unknown = {name: value - known - OF_OTHER_VERSIONS for name, value in lists.items() if name not in of_arguments}

    assert {name: value for name, value in unknown.items() if value} == {}


def test_every_operation_has_one_tier_and_one_family(backend: tuple[FrameworkAttributes, Any]) -> None:
    attributes, facts = backend
    families = [getattr(facts, name) for name in FAMILIES if hasattr(facts, name)]

    assert sum(map(len, families)) == len(facts.REVIEWED | getattr(facts, "UNCHECKABLE", frozenset()))
    assert not facts.REVIEWED & (facts.OFF | facts.REVEALS | facts.LOCAL | facts.FORM_DEPENDS)
    assert not (facts.REVIEWED | facts.OFF) & facts.PUBLIC
    assert not facts.REVIEWED & getattr(facts, "BEYOND", frozenset())
    assert sum(attributes.tiers().values()) == len(attributes.ops)


def test_most_operations_that_programs_use_are_reviewed() -> None:
    of_torch, of_numpy = TorchAttributes(torch).tiers(), NumpyAttributes(np).tiers()

    assert of_torch["reviewed"] > 1000
    assert of_numpy["reviewed"] > 400
    assert min(of_torch["off"], of_numpy["off"]) > 20


def test_torchs_tags_are_facts() -> None:
    reading = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
    for op in TorchAttributes(torch).ops:
        tags = syft_torch.facts._Description(op).tags
        if torch.Tag.nondeterministic_seeded in tags:
            assert op.random, op.name
        if tags & reading and op.tier != "off":
            assert op.discloses != "nothing" or op.facts.form_depends is not None, op.name


KNOWN_TO_THE_CORE = {
    "writes": "__setitem__ copyto place putmask put put_along_axis fill_diagonal at "
    "_amp_foreach_non_finite_check_and_unscale _amp_update_scale batch_norm native_batch_norm cudnn_batch_norm "
    "miopen_batch_norm instance_norm batch_norm_update_stats batch_norm_gather_stats "
    "batch_norm_gather_stats_with_counts fused_moving_avg_obs_fake_quant embedding embedding_bag",
    "form": "nonzero argwhere flatnonzero masked_select unique unique_consecutive unique_dim unique_all unique_counts "
    "unique_inverse unique_values bincount compress extract trim_zeros intersect1d setdiff1d setxor1d union1d "
    "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc coalesce _nnz indices values "
    "histogram histogramdd histogram2d histogram_bin_edges _pack_padded_sequence _pad_packed_sequence",
    "form in some calls": "one_hot where __getitem__ repeat_interleave repeat tile tensor_split split split_with_sizes "
    "array_split hsplit vsplit dsplit delete insert view reshape expand narrow unflatten new_zeros new_ones new_full "
    "new_empty new_tensor interpolate pad combinations select_scatter slice_scatter",
    "uninitialized": "empty_like new_empty new_empty_strided",
    "reads_beyond": "as_strided as_strided_copy as_strided_scatter resize resize_as _resize_output",
    "alters_autograd": "requires_grad retain_grad grad data",
    "differentiates": "backward grad",
}
"""Operations that must have a fact, because the core does not know them by name."""


@pytest.mark.parametrize("fact", KNOWN_TO_THE_CORE)
def test_the_core_needs_no_names_of_operations(fact: str) -> None:
    for attributes in (TorchAttributes(torch), NumpyAttributes(np)):
        for op in attributes.ops:
            if op.operation not in KNOWN_TO_THE_CORE[fact].split() or op.spelling == "getter" or op.local:
                continue
            if fact == "reads_beyond" and attributes.ALIAS == "numpy":  # its `resize` is off, or returns a copy
                continue
            if fact == "writes":
                assert op.writes or op.name in ("torch.put", "torch.Tensor.put"), op.name  # they return a new tensor
            elif fact == "form":
                assert op.discloses == "form" or op.name.startswith("numpy.char."), op.name
            elif fact == "form in some calls":
                assert op.discloses != "nothing" or op.facts.form_depends is not None, op.name
            elif fact == "alters_autograd":
                assert op.alters_autograd != (op.spelling == "function" and op.attr == "grad"), op.name
            elif fact == "differentiates":
                assert op.differentiates == (op.spelling != "setter"), op.name
            else:
                assert getattr(op, fact), op.name


def test_facts_are_plain_attributes_after_first_access() -> None:
    op = TorchAttributes(torch).ops.look_up("torch.add")
    assert "writes" not in vars(op)

    assert op.writes == frozenset()

    assert vars(op)["writes"] is op.facts.writes
    assert vars(op)["tier"] == "reviewed"


# --- allow


def test_an_operation_without_facts_is_refused_on_private_data() -> None:
    op = describe_op("toy.strange", abs, "function")

    assert (op.tier, op.discloses, op.writes) == ("public", "values", WRITES_ALL)
    assert op.reads_beyond
    assert op.partial
    assert not op.states_fact


def test_an_allowed_function_is_public_unless_it_is_described() -> None:
    op = TorchAttributes(torch).allow(abs, "builtins.abs_for_facts")

    assert (op.tier, op.discloses, op.writes) == ("public", "values", WRITES_ALL)


def test_a_function_with_facts_can_be_reviewed() -> None:
    op = TorchAttributes(torch).allow(
        abs, "builtins.abs", tier="reviewed", discloses="nothing", writes=frozenset({0}), reads_beyond=False
    )

    x = torch.ones(1)
    assert op.tier == "reviewed"
    assert op.targets((x,), {}) == [x]


@pytest.mark.parametrize(
    "known",
    [{}, {"discloses": "nothing"}, {"discloses": "nothing", "writes": frozenset()}, {"writes": frozenset()}],
)
def test_a_function_without_facts_cannot_be_reviewed(known: Any) -> None:
    with pytest.raises(OperationNotAllowedError, match="cannot allow 'builtins.abs' on private data"):
        TorchAttributes(torch).allow(abs, "builtins.abs", tier="reviewed", **known)
