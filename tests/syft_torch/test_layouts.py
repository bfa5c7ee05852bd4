"""Inferred strides are those of the CPU, not of the meta device."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.hook.rules import leaves  # noqa: E402
from syft_torch import layouts  # noqa: E402
from syft_torch.attributes import TorchAttributes  # noqa: E402

KINDS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


@pytest.fixture(scope="module")
def attributes() -> Any:
    made = TorchAttributes(torch)
    made.warm_up()
    return made


def infer(attributes: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    forms = [attributes.form_of(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
    inferred = attributes.infer(attributes.ops.look_up(name), tuple(forms), kwargs)
    return inferred and [form.strides for form in leaves(inferred.result)]


def strides(result: Any) -> list[Any]:
    return [leaf.stride() for leaf in leaves(result)]


@pytest.mark.parametrize("shape", [(12, 4), (4, 12), (3, 12, 4), (0, 4), (3, 3)], ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_a_decomposition_has_the_strides_of_the_cpu(attributes: Any, shape: tuple[int, ...], full: bool) -> None:
    for x in (torch.randn(shape), torch.randn(shape).mT.contiguous().mT):
        assert infer(attributes, "torch.linalg.svd", x, full) == strides(torch.linalg.svd(x, full))


@pytest.mark.parametrize("name", [kind + suffix for kind in KINDS for suffix in ("", "2", "n")])
@pytest.mark.parametrize("last", [False, True], ids=["other dimensions", "last dimensions"])
def test_a_transform_has_the_strides_of_the_cpu(attributes: Any, name: str, last: bool) -> None:
    options = {} if last else {"dim": (0, 1) if name.endswith(("2", "n")) else 1}
    for x in (torch.zeros(2, 3, 4), torch.zeros(4, 3, 2).permute(2, 1, 0)):
        assert infer(attributes, f"torch.fft.{name}", x, **options) == strides(getattr(torch.fft, name)(x, **options))


def test_a_convolution_of_images_with_channels_last_has_the_strides_of_the_cpu(attributes: Any) -> None:
    x, w = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last), torch.randn(4, 3, 3, 3)

    assert infer(attributes, "torch.nn.functional.conv2d", x, w) == strides(torch.conv2d(x, w))


def test_strides_that_a_large_call_may_have_are_not_guessed(attributes: Any) -> None:
    assert infer(attributes, "torch.linalg.svd", torch.empty(1000, 100)) is None
    assert infer(attributes, "torch.floor_divide", torch.empty(300, 300).T, 2) is None
    assert infer(attributes, "torch.add", torch.empty(300, 300).T, 2) == [(1, 300)]


def test_a_small_operand_with_a_large_result_is_not_computed(attributes: Any) -> None:
    x = torch.zeros(3, 2).T

    assert infer(attributes, "torch.Tensor.repeat", x, 1 << 20, 1 << 20) == [(3 << 20, 1)]


def test_an_inference_draws_no_numbers_of_the_program(attributes: Any) -> None:
    torch.manual_seed(0)
    before, generator = torch.get_rng_state(), torch.Generator()
    state = generator.get_state()

    infer(attributes, "torch.bernoulli", torch.zeros(3, 2).T)
    infer(attributes, "torch.bernoulli", torch.zeros(3, 2).T, generator=generator)

    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(generator.get_state(), state)


def test_tensors_on_other_devices_are_not_computed_on() -> None:
    known = TorchAttributes(torch).form_of(torch.empty(3, 2, device="meta").T)

    found = layouts.correct(TorchAttributes(torch).ops.look_up("torch.floor_divide"), (known, 2), {}, [known], None)

    assert found == [known]
