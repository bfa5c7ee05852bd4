"""Serde: tensors and chains are preserved by the wire format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from syft_core.exceptions import SerdeError
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.rules import leaves
from syft_core.serde import Context, codecs, deserialize, serialize
from syft_core.serde.structure import MALFORMED
from syft_core.tensors.logging import LoggingTensor
from syft_core.testing.calls import SampleCall
from syft_core.testing.section import VALUES, Section, fix
from syft_core.values import Tensor

_NUMBERS = (float, int, bool)


class SerdeSection(Section):
    """Tensors, dtypes and chains arrive unchanged; malformed ones are refused."""

    @pytest.mark.parametrize("numbers", [VALUES, [1, -2], [True, False], [], [0.1]], ids=str)
    @fix("register_codecs (the codec of your tensor type)")
    def test_a_tensor_arrives_with_its_numbers_shape_and_dtype(self, hook: FrameworkHook, numbers: list[Any]) -> None:
        sent = hook.create_tensor(numbers)

        received = deserialize(serialize(sent))

        assert type(received) is type(sent)
        assert (self._content(received), tuple(received.shape)) == (self._content(sent), tuple(sent.shape))
        assert received.dtype == sent.dtype

    def _content(self, tensor: Tensor) -> Tensor:
        return self.numbers(tensor) if len(tensor) else []

    @fix("register_codecs (your dtypes, see register_scalar_type)")
    def test_a_dtype_arrives(self, plain: Tensor) -> None:
        assert deserialize(serialize(plain.dtype)) == plain.dtype

    @fix("register_codecs (the codec of your tensor type)")
    def test_a_received_tensor_shares_no_memory(self, plain: Tensor) -> None:
        if not self.mutable:
            pytest.skip("tensors are immutable")
        received = deserialize(serialize(plain))

        received[0] = 9.0
        plain[1] = 8.0

        assert self.numbers(received) == [9.0, *VALUES[1:]]
        assert self.numbers(plain) == [VALUES[0], 8.0, VALUES[2]]

    @fix("Codec(shared=True)")
    def test_a_tensor_that_occurs_twice_in_a_message_arrives_as_one_object(self, plain: Tensor) -> None:
        one, other = deserialize(serialize([plain, plain]))

        assert one is other

    @fix("register_codecs (the codec of your wrapper)")
    def test_a_chain_arrives_as_a_chain(self, plain: Tensor) -> None:
        received = deserialize(serialize(LoggingTensor().on(plain).tag("#x")))

        self.assert_chain(received, plain, LoggingTensor)
        assert received.tags == {"#x"}

    @pytest.mark.parametrize("forged", [None, "text", {}, [None], -1], ids=repr)
    @fix("register_codecs (check the type of every part that you read, and raise SerdeError)")
    def test_a_malformed_tensor_is_refused(self, plain: Tensor, forged: object) -> None:
        codec, context = codecs.for_type(type(plain)), Context()
        payload = list(codec.simplify(plain, context))
        for place in range(len(payload)):
            received = [*payload[:place], forged, *payload[place + 1 :]]
            try:
                made: Any = codec.detail(received, context)
            except (SerdeError, *MALFORMED):
                continue
            numbers = self.numbers(made) if len(made.shape) else [self.numbers(made)]
            assert all(type(number) in _NUMBERS for number in leaves(numbers)), f"part {place} may be {forged!r}"

    @fix("FrameworkAttributes.result_types")
    def test_named_tuples_that_operations_return_are_listed(
        self, hook: FrameworkHook, calls: Sequence[SampleCall]
    ) -> None:
        listed = hook.attributes.result_types
        for call in calls:
            if call.returns_named_tuple:
                kind = type(call.working[0].result)
                name = kind.__name__
                assert listed.get(name) is kind, f"{call.op.name} returns a {name}, which is not in `result_types`"
