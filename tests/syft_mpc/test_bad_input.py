"""What users get wrong with shared values: a clear error, and the shares of all values stay as they are."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .settings import Setting, assert_close

torch = pytest.importorskip("torch")

B = np.array([2.0, 0.5, -3.0])


class Scene:
    """What a user has at hand."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        self.setting = setting
        self.bob, self.alice, self.dave = setting.everybody
        self.carol = setting.carol
        self.plain = torch.tensor(B)
        self.whole = torch.tensor([1, 2, 3])
        self.x = setting.put(B)
        self.matrix = setting.put(np.ones((2, 3)))
        self.integers = setting.share(torch.tensor([1, 2, 3]))
        self.pointer = self.plain.send(self.bob)
        self.file = str(folder / "x.pt")


MISTAKES: dict[str, tuple[Callable[[Scene], Any], str]] = {
    "floats": (
        lambda s: s.plain.share(s.bob, s.alice, crypto_provider=s.carol),
        "cannot share float64 numbers: shares are integers; write `x.fix_precision().share(...)`",
    ),
    "no_workers": (
        lambda s: s.whole.share(crypto_provider=s.carol),
        "cannot share among 0 workers: at least two are needed; ",
    ),
    "one_worker": (
        lambda s: s.whole.share(s.bob, crypto_provider=s.carol),
        "cannot share among 1 workers: at least two are needed; ",
    ),
    "same_worker": (
        lambda s: s.whole.share(s.bob, s.bob, crypto_provider=s.carol),
        "cannot share: a worker is given twice, or is the crypto_provider too, and would learn the values; ",
    ),
    "no_provider": (
        lambda s: s.whole.share(s.bob, s.alice) > 0,
        "cannot compute this without a crypto_provider: products, divisions and comparisons need its random numbers; ",
    ),
    "provider_is_a_party": (
        lambda s: s.whole.share(s.bob, s.alice, crypto_provider=s.alice),
        "cannot share: a worker is given twice, or is the crypto_provider too",
    ),
    "a_list": (
        lambda s: s.whole.share([s.bob, s.alice], crypto_provider=s.carol),
        "cannot share: expected workers, got a list; unpack it: ",
    ),
    "a_worker_instead_of_a_list": (
        lambda s: s.plain.encrypt(workers=s.bob, crypto_provider=s.carol),
        "cannot encrypt: expected a list of workers; ",
    ),
    "bytes": (
        lambda s: torch.ones(2, dtype=torch.uint8).share(s.bob, s.alice, crypto_provider=s.carol),
        "cannot share uint8 numbers: shares are integers of 64 or 32 bits; convert them first, e.g. `x.long()`",
    ),
    "other_ring": (
        lambda s: s.integers + torch.tensor([1], dtype=torch.int32).share(s.bob, s.alice, crypto_provider=s.carol),
        "cannot compute on shared int64 and int32 numbers: a mask of one ring does not hide a number of the other; ",
    ),
    "negative_precision": (
        lambda s: s.plain.fix_precision(precision_fractional=-1),
        "cannot use base=10, precision_fractional=-1: expected integers, ",
    ),
    "fraction_as_base": (lambda s: s.plain.fix_precision(base=2.5), "cannot use base=2.5, "),
    "factor_out_of_range": (lambda s: s.x * 1e20, "cannot encode a number: it is not finite, or not smaller than "),
    "complex_factor": (lambda s: s.x * 1j, "cannot encode complex numbers: "),
    "unknown_worker": (
        lambda s: s.whole.share("bobb", s.alice, crypto_provider=s.carol),
        "cannot find worker 'bobb': no worker here has this id; did you mean 'bob'?",
    ),
    "unknown_protocol": (
        lambda s: s.whole.share(s.bob, s.alice, crypto_provider=s.carol, protocol="fss"),
        "cannot ",
    ),
    "shared_twice": (
        lambda s: s.x.share(s.bob, s.alice, crypto_provider=s.carol),
        "cannot share this tensor: it is shared already; call `refresh()` for new shares, or `get()` it first",
    ),
    "out_of_range": (
        lambda s: s.x + 1e17,
        "cannot encode a number: it is not finite, or not smaller than 7.04e+13 in size, and does not fit",
    ),
    "tensor_out_of_range": (
        lambda s: s.x * torch.tensor([1.0, 1e30, 0.0], dtype=torch.float64),
        "cannot encode a number: it is not finite",
    ),
    "shapes": (
        lambda s: s.x + s.setting.put(np.ones(2)),
        "cannot broadcast shapes (3,) and (2,): they differ in a dimension; reshape one of them",
    ),
    "shapes_of_public_values": (
        lambda s: s.x * torch.ones(2, dtype=torch.float64),
        "cannot broadcast shapes (3,) and (2,): they differ in a dimension; reshape one of them",
    ),
    "shapes_of_a_comparison": (
        lambda s: s.x < s.setting.put(np.ones(2)),
        "cannot broadcast shapes (3,) and (2,): they differ in a dimension; reshape one of them",
    ),
    "shapes_of_matrices": (
        lambda s: s.matrix @ s.matrix,
        "cannot multiply matrices of shapes (2, 3) and (2, 3): the inner dimensions differ; transpose one",
    ),
    "shapes_in_place": (
        lambda s: s.x.add_(s.matrix),
        "cannot write numbers of shape (2, 3) to a tensor of shape (3,): they do not fit; ",
    ),
    "other_parties": (
        lambda s: s.x + s.setting.encode(B).share(s.bob, s.dave, crypto_provider=s.carol),
        "cannot compute on values shared among bob, alice and among bob, dave: the parties, their order or the "
        "crypto_provider differ; share both among the same workers",
    ),
    "other_precision": (
        lambda s: s.x + s.setting.put(B, precision_fractional=10),
        "cannot run 'add': it mixes two FixedPrecisionTensors that differ in precision_fractional; ",
    ),
    "integers_and_numbers": (lambda s: s.x + s.integers, "cannot "),
    "integers_and_floats": (
        lambda s: s.integers * 0.5,
        "cannot share float numbers: shares are integers; write `x.fix_precision().share(...)`",
    ),
    "pointer_and_shares": (lambda s: s.x + s.pointer, "cannot run 'torch.Tensor.add': "),
    "encoded_twice": (
        lambda s: s.x.fix_precision(),
        "cannot encode this tensor: it is a chain already; call `get()` or `float_precision()` first",
    ),
    "decoded_while_shared": (
        lambda s: s.x.float_precision(),
        "cannot convert a shared number to a float: no worker knows it; fetch it first: `x.get().float_precision()`",
    ),
    "decoded_without_precision": (
        lambda s: s.integers.float_precision(),
        "cannot convert to floats: the tensor has no fixed precision; ",
    ),
    "refreshed_while_not_shared": (lambda s: s.plain.refresh(), "cannot do this: the tensor is not shared; "),
    "if": (
        lambda s: 1 if s.x.sum() > 0 else 0,
        "cannot read the values of shared or encoded numbers (item, bool, if, ",
    ),
    "if_integers": (lambda s: bool(s.integers[0] > 0), "cannot read the values of shared or encoded numbers"),
    "item": (lambda s: s.x[0].item(), "cannot read the values of shared or encoded numbers"),
    "float": (lambda s: float(s.x[0]), "cannot read the values of shared or encoded numbers"),
    "tolist": (lambda s: s.x.tolist(), "cannot read the values of shared or encoded numbers"),
    "numpy": (lambda s: s.x.numpy(), "cannot read the values of shared or encoded numbers"),
    "asarray": (lambda s: np.asarray(s.x), "cannot read the values of shared or encoded numbers"),
    "format": (lambda s: f"{s.x[0]:.2f}", "cannot read the values of shared or encoded numbers"),
    "save": (lambda s: torch.save(s.x, s.file), "cannot read the values of shared or encoded numbers"),
    "pickle": (lambda s: pickle.dumps(s.x), "cannot read the values of shared or encoded numbers"),
    "send": (
        lambda s: s.x.send(s.bob),
        "cannot send a shared value: its shares stay with their parties; fetch it first: `x.get()`",
    ),
    "move": (lambda s: s.x.move(s.dave), "cannot move a shared value: its shares stay with their parties; "),
    "remote_send": (
        lambda s: s.x.remote_send(s.dave),
        "cannot remote_send a shared value: its shares stay with their parties; ",
    ),
    "secret_mask": (
        lambda s: s.x[s.x > 0],
        "cannot index with shared or encoded numbers: the choice would reveal them; ",
    ),
    "no_rule": (
        lambda s: s.x.mode(),
        "cannot run 'aten.mode.default' on a FixedPrecisionTensor: the layer encodes its values and has no rule",
    ),
    "fractional_power": (
        lambda s: s.x**1.3,
        "cannot raise a fixed-precision number to this power: the exponent must be a multiple of 1/2; ",
    ),
    "to_integers": (lambda s: s.x.long(), "cannot convert fixed-precision numbers to torch.int64: "),
    "by_zero": (lambda s: s.x / 0, "cannot divide by 0: fixed-precision numbers have no infinity; "),
    "largest_of_none": (
        lambda s: s.setting.put(np.zeros(0)).max(),
        "cannot find the largest or smallest of no numbers: the axis is empty; ",
    ),
    "convolution_in_space": (
        lambda s: torch.nn.functional.conv3d(
            s.setting.put(np.ones((1, 1, 3, 3, 3))), s.setting.put(np.ones((1, 1, 2, 2, 2)))
        ),
        "cannot run 'three-dimensional convolution' on a FixedPrecisionTensor: there is no protocol",
    ),
    "plain_statistics": (
        lambda s: torch.nn.functional.batch_norm(
            s.matrix, torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64), training=True
        ),
        "cannot run 'batch norm in training with plain running statistics, which cannot be updated' on a ",
    ),
    "into_public": (
        lambda s: s.setting.encode(B).add_(s.x),
        "cannot write shared numbers into a tensor that is not shared: it would reveal them; ",
    ),
    "data_elsewhere": (
        lambda s: s.pointer.fix_precision().share(s.alice, s.dave, crypto_provider=s.carol),
        "cannot share data of worker 'bob' among other workers: it would have to leave its worker; ",
    ),
    "computing_at_one_worker": (
        lambda s: s.pointer.fix_precision() * 2,
        "cannot compute on fixed-precision numbers at one worker: computing needs shares; ",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_a_clear_error_and_loses_nothing(two: Setting, tmp_path: Path, name: str) -> None:
    mistake, text = MISTAKES[name]
    scene = Scene(two, tmp_path)
    before = two.count()
    with pytest.raises(Exception) as raised:  # noqa: PT011  # the text is checked
        mistake(scene)
    assert text in str(raised.value)
    assert re.match(r"cannot .+?: .+", str(raised.value), re.DOTALL)
    del raised
    assert two.count() == before
    assert_close(two.read(scene.x * scene.x), B * B)
    assert scene.integers.get().tolist() == [1, 2, 3]
    assert scene.plain.tolist() == B.tolist()


def test_printing_never_fetches(two: Setting) -> None:
    x = two.put(B)
    lines = len(str(two.workers[0].ledger).splitlines())
    assert "2.0" not in f"{x} {x!r} {x.child} {x.child.child}"
    assert "[AdditiveSharingTensor]" in x._repr_html_() or "AdditiveSharingTensor" in x._repr_html_()
    assert len(str(two.workers[0].ledger).splitlines()) == lines


def test_a_copy_is_a_shared_value_of_its_own(two: Setting) -> None:
    x = two.put(B)
    for other in (copy.deepcopy(x), x.clone(), x.copy()):
        other += 1
        assert_close(two.read(other), B + 1)
    assert_close(two.read(x), B)
