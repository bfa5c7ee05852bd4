from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import syft_core as sy
from syft_core.messages import Run
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.workers.party.derivations import Maker, Operand
from syft_worker.desk.messages import AskRelease

from .settings import SAMPLES, Setting


def train(setting: Setting, **changes: Any) -> Any:
    message = setting.message(**changes)
    setting.location.tell(message)
    return setting.worker.object_store.entry(message.result)


def point_to(setting: Setting, id: Any) -> PointerTensor:
    return PointerTensor(setting.location, id, setting.data[0].framework, owner=setting.hook.local_worker)


def options(entry: Any) -> dict[str, Any]:
    return dict(entry.made_by.options)


def test_an_update_of_private_data_names_its_program_and_its_whole_operands(private: Setting) -> None:
    entry = train(private)

    maker = entry.made_by
    assert maker.protocol == "train"
    assert maker.parties == ("alice",)
    assert maker.operands == (Operand(("#x",), (SAMPLES, 4), True), Operand(("#y",), (SAMPLES,), True))
    assert options(entry)["samples"] == SAMPLES
    assert options(entry)["parameters"] == len(private.weights)
    assert len(options(entry)["program"]) == len(options(entry)["supplied"]) == 64


def test_an_update_of_public_data_has_no_maker(setting: Setting) -> None:
    assert train(setting).made_by is None


def test_the_same_program_has_the_same_digest_for_other_weights_and_seeds(private: Setting) -> None:
    first = options(train(private))
    second = options(train(private, weights=private.weights + 1, seed=9))

    assert first["program"] == second["program"]
    assert first["supplied"] != second["supplied"]


@pytest.mark.parametrize(("name", "value"), [("epochs", 3), ("batch_size", SAMPLES), ("clip", 1.0)])
def test_other_settings_are_another_program(private: Setting, name: str, value: Any) -> None:
    if name == "batch_size":
        private.record(torch.nn.functional.cross_entropy)
        plans = [private.store(program) for program in private.recorded.programs.find([SAMPLES])]
        changes = {"plans": tuple(plans)}
    else:
        changes = {}

    changed = train(private, settings={**private.settings, name: value}, **changes)

    assert options(changed)["program"] != options(train(private))["program"]


def test_a_constant_of_the_loss_is_part_of_the_program(private: Setting) -> None:
    first = options(train(private))["program"]
    private.record(lambda output, y: torch.nn.functional.cross_entropy(output, y) * 2.0)

    assert options(train(private))["program"] != first


def test_rows_of_the_data_are_not_whole(private: Setting) -> None:
    x, y = (private.worker.search(tag)[0] for tag in ("#x", "#y"))

    entry = train(private, data=(x[:40].child, y[:40].child), settings={**private.settings, "drop_last": True})

    assert [operand.is_whole for operand in entry.made_by.operands] == [False, False]


def test_data_that_is_used_twice_is_not_whole_the_second_time(private: Setting) -> None:
    message = private.message(data=private.data * 2, settings={**private.settings, "drop_last": True})
    private.location.tell(message)

    maker = private.worker.object_store.entry(message.result).made_by
    assert [operand.is_whole for operand in maker.operands] == [True, True, False, False]
    assert dict(maker.options)["samples"] == 2 * SAMPLES - 2 * SAMPLES % 8


def test_private_weights_are_an_operand_that_is_not_whole(private: Setting) -> None:
    first = train(private)

    entry = train(private, weights=point_to(private, first.id))

    assert entry.made_by.operands[2:] == (Operand((), ()),)


def test_a_result_that_was_changed_in_place_has_no_maker(private: Setting) -> None:
    message = private.message()
    private.location.tell(message)
    entry = private.worker.object_store.entry(message.result)

    private.location.tell(Run("torch", "torch.Tensor.add_", (point_to(private, entry.id), 1), {}, new_id()))

    assert entry.made_by is None


def test_the_ledger_and_a_request_name_the_program_and_the_samples(private: Setting) -> None:
    message = private.message()
    private.location.tell(message)

    private.location.ask(AskRelease((message.result,), None, "why"))

    (request,) = private.worker.requests
    program = dict(request.made_by[0].options)["program"]
    assert request.forms.endswith(f" of train(program={program[:6]}…, samples={SAMPLES})")


def test_a_rule_for_the_form_covers_a_result_that_has_a_maker(hook: Any) -> None:
    hook.local_worker.user = "dana"
    private = Setting(hook, sy.VirtualWorker(hook, id="alice"), private=True)
    form = f"Tensor[{len(private.weights)}], Tensor[] float64"
    private.worker.allow(
        "study", by="Noor", user="dana", form=form, computed_from=["#x", "#y"], count=1, any_program=True
    )

    difference, _ = private.train()

    assert len(difference) == len(private.weights)


def test_a_maker_of_several_parties_shows_its_options() -> None:
    assert str(Maker("noisy_max", (("scale", 2.0),), ("a", "b"))) == "noisy_max(scale=2.0) among 2 parties"
