"""Defects of the ancestor in encrypted computation, each with a test that fails if it comes back.

| defect | what went wrong | covered by |
|---|---|---|
| D-30 | gradients kept the shape of a broadcast operand | test_d30_gradients_have_the_shape_of_their_operand |
| D-31 | operations without a gradient gave None | test_d31_views_and_reshapes_pass_gradients_on |
| D-32 | no gradient for a divisor; mean ignored its axis | test_d32_divisors_and_means_along_an_axis_get_gradients |
| D-40 | overflow in encoding | test_d40_numbers_that_do_not_fit_are_refused |
| D-41 | different precisions were added | test_d41_different_precisions_are_refused |
| D-42 | public @ shared had its operands swapped | test_d42_matrix_products_keep_the_order_of_their_operands |
| D-43 | sigmoid, tanh and log failed on unshared numbers | test_d43_functions_work_on_shared_and_unshared_numbers |
| D-44 | reciprocal("newton") was 1/sqrt(x) | test_d44_every_method_of_reciprocal_is_the_reciprocal |
| D-45 | sharing floats truncated them | test_d45_floats_are_not_shared |
| D-46 | share_ returned a new object | test_d46_share_in_place_keeps_the_object |
| D-47 | one worker, or none | test_d47_fewer_than_two_workers_are_refused |
| D-48 | three parties: refused, or wrong quotients | test_d48_three_parties_multiply_compare_and_divide |
| D-49 | ties of max and argmax | test_d49_ties_have_one_maximum |
| D-55 | weak random numbers | test_prg.py::test_the_seeds_of_frameworks_do_not_determine_shares_and_masks |
| D-56 | the client dealt triples and saw masked values | test_network.py::test_the_client_receives_no_masked_values |
| D-57 | one mask for a whole tensor | test_securenn.py::test_every_element_has_a_mask_of_its_own |
| D-58 | share_convert off by one | test_securenn.py::test_shares_are_converted_exactly |
| D-59 | comparison beyond 2^61, division of negatives | test_d59_comparisons_are_right_up_to_the_documented_limit |
| D-73 | a pool of processes for each product | test_d73_no_process_is_started |
| D-74 | comparison with an unscaled number | test_d74_numbers_are_scaled_before_they_are_compared |
| D-75 | rarely wrong comparisons, and a limit of elements | test_d75_comparisons_are_exact_for_many_elements |
| D-76 | operations ran share by share and returned garbage | test_d76_an_operation_without_a_rule_is_refused |
| D-77 | exp and reciprocal were wrong at the default precision | test_d77_the_default_precision_serves |
| D-78 | encoding truncated, accepted NaN, changed the dtype | test_d78_encoding_rounds_and_keeps_the_dtype |
| D-85 | Adam and others raised on shared parameters | test_d85_optimizers_step_on_shared_parameters |
| D-86 | missing operations | test_d86_operations_that_were_missing |
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from syft_core.exceptions import MixedLayersError, OperationNotAllowedError
from syft_mpc.errors import PrecisionError, ProtocolError

from .settings import Setting, assert_close

FOLDER = Path(__file__).parent


def test_every_defect_of_the_table_names_a_test_that_exists() -> None:
    rows = re.findall(r"^\| (D-\d+) \| .* \| (\S+) \|$", __doc__ or "", re.MULTILINE)
    wanted = [*range(30, 33), *range(40, 50), *range(55, 60), *range(73, 79), 85, 86]
    assert [defect for defect, _ in rows] == [f"D-{number}" for number in wanted]
    for _, test in rows:
        file, _, name = test.rpartition("::")
        tree = ast.parse((FOLDER / (file or Path(__file__).name)).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


@pytest.fixture(params=[0, 2, 3], ids=["unshared", "two", "three"])
def setting(request: pytest.FixtureRequest, torch_hook: Any) -> Setting:
    return Setting(torch_hook, request.param)


def test_d30_gradients_have_the_shape_of_their_operand(setting: Setting) -> None:
    x, y = setting.put(np.ones((3, 2))).requires_grad_(), setting.put(np.array([2.0, 3.0])).requires_grad_()
    (x * y).sum().backward()
    assert_close(setting.read(x.grad), np.tile([2.0, 3.0], (3, 1)))
    assert_close(setting.read(y.grad), np.array([3.0, 3.0]))


def test_d31_views_and_reshapes_pass_gradients_on(setting: Setting) -> None:
    x = setting.put(np.array([1.0, 4.0])).requires_grad_()
    (x.view(2, 1).reshape(1, 2).sqrt() * 2).sum().backward()
    assert_close(setting.read(x.grad), np.array([1.0, 0.5]), 5e-3)


def test_d32_divisors_and_means_along_an_axis_get_gradients(setting: Setting) -> None:
    x, y = setting.put(np.array([[6.0, 2.0]])).requires_grad_(), setting.put(np.array([[2.0, 4.0]])).requires_grad_()
    (x / y).mean(1).sum().backward()
    assert_close(setting.read(x.grad), np.array([[0.25, 0.125]]))
    assert_close(setting.read(y.grad), np.array([[-0.75, -0.0625]]), 5e-3)


def test_d40_numbers_that_do_not_fit_are_refused(torch_hook: Any) -> None:
    with pytest.raises(PrecisionError, match="does not fit into the ring"):
        torch_hook.torch.tensor([1e17]).fix_precision()


def test_d41_different_precisions_are_refused(setting: Setting) -> None:
    x = setting.put([1.0], base=10, precision_fractional=3)
    with pytest.raises(MixedLayersError, match="precision_fractional"):
        x + setting.put([1.0], base=10, precision_fractional=4)


def test_d42_matrix_products_keep_the_order_of_their_operands(setting: Setting) -> None:
    one, other = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0]])
    expected = [[19, 22], [43, 50]]
    assert_close(setting.read(setting.encode(one) @ setting.put(other)), expected)
    assert_close(setting.read(setting.plain(one) @ setting.put(other)), expected)
    assert_close(setting.read(setting.put(one) @ setting.encode(other)), expected)


def test_d43_functions_work_on_shared_and_unshared_numbers(setting: Setting) -> None:
    torch, numbers = setting.hook.torch, np.array([0.5, 1.0, 2.0])
    for name in ("sigmoid", "tanh", "log", "exp"):
        assert_close(
            setting.read(getattr(torch, name)(setting.put(numbers))), getattr(torch, name)(torch.tensor(numbers))
        )


@pytest.mark.parametrize("method", [None, "NR", "newton", "log", "division"])
def test_d44_every_method_of_reciprocal_is_the_reciprocal(torch_hook: Any, method: str | None) -> None:
    setting = Setting(torch_hook)
    found = setting.put([4.0, 0.25]).reciprocal(**({} if method is None else {"method": method}))
    assert_close(setting.read(found), np.array([0.25, 4.0]), 2e-2)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_d45_floats_are_not_shared(torch_hook: Any, dtype: str) -> None:
    setting = Setting(torch_hook)
    with pytest.raises(ProtocolError, match=f"cannot share {dtype} numbers"):
        setting.share(setting.plain(np.array([1.5], dtype)))


def test_d46_share_in_place_keeps_the_object(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    x = torch_hook.torch.tensor([1, 2])
    assert x.share_(*setting.workers, crypto_provider=setting.carol) is x
    assert x.get().tolist() == [1, 2]


def test_d47_fewer_than_two_workers_are_refused(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    for workers in ([], setting.workers[:1]):
        with pytest.raises(ProtocolError, match=f"cannot share among {len(workers)} workers: at least two are needed"):
            torch_hook.torch.tensor([1]).share(*workers, crypto_provider=setting.carol)


def test_d48_three_parties_multiply_compare_and_divide(torch_hook: Any) -> None:
    setting = Setting(torch_hook, 3)
    numbers = np.random.default_rng(0).uniform(-1000, 1000, 5000)
    x = setting.put(numbers)
    assert_close(setting.read(x / 7), numbers / 7)
    assert_close(setting.read(x * 0.5), numbers * 0.5)
    assert_close(setting.read(torch_hook.torch.relu(x)), np.maximum(numbers, 0))
    assert_close(setting.read(x * x), numbers * numbers)


def test_d49_ties_have_one_maximum(setting: Setting) -> None:
    x = setting.put([7.0, 7.0, 3.0])
    assert setting.read(x.max()) == 7
    assert setting.read(x.argmax()) == 0
    values, indices = x.max(0, keepdim=True)
    assert (setting.read(values).tolist(), setting.read(indices).tolist()) == ([7], [0])


def test_d59_comparisons_are_right_up_to_the_documented_limit(torch_hook: Any) -> None:
    setting = Setting(torch_hook, 3)
    limit = 2**62 - 1
    values = np.array([limit, -limit, 2**61, -(2**61), 1, -1, 0])
    x = setting.share(setting.plain(values))
    assert (x > 0).get().tolist() == (values > 0).astype(int).tolist()
    assert (x < 1).get().tolist() == (values < 1).astype(int).tolist()
    pair = Setting(torch_hook)
    group = pair.put([-7.5, 8.0]) / pair.put([2.0, -4.0])
    assert_close(pair.read(group), np.array([-3.75, -2.0]))


def test_d73_no_process_is_started(torch_hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("os.fork", refuse)
    monkeypatch.setattr("multiprocessing.process.BaseProcess.start", refuse)
    setting = Setting(torch_hook)
    x = setting.put(np.ones((1, 1, 4, 4)))
    setting.read(torch_hook.torch.nn.functional.max_pool2d(x @ x, 2))


def test_d74_numbers_are_scaled_before_they_are_compared(setting: Setting) -> None:
    x = setting.put([1.0, 3.0, -1.0], base=10, precision_fractional=3)
    assert setting.read(x > 2).tolist() == [0, 1, 0]
    assert setting.read(x == 1).tolist() == [1, 0, 0]


def test_d75_comparisons_are_exact_for_many_elements(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    numbers = np.random.default_rng(0).integers(-(2**40), 2**40, 60_000)
    other = numbers + np.random.default_rng(1).integers(-(2**28), 2**28, 60_000)
    result = (setting.share(setting.plain(numbers)) < setting.share(setting.plain(other))).get()
    assert (np.asarray(result) == (numbers < other)).all()


@pytest.mark.parametrize("name", ["cummax", "logcumsumexp", "mode", "digamma"])
def test_d76_an_operation_without_a_rule_is_refused(setting: Setting, name: str) -> None:
    x = setting.put([3.0, -1.0])
    arguments = (0,) if name in ("cummax", "logcumsumexp") else ()
    with pytest.raises(OperationNotAllowedError, match="has no rule for it"):
        getattr(x, name)(*arguments)
    assert_close(setting.read(abs(x)), np.array([3.0, 1.0]))
    assert_close(setting.read(x.clamp(-0.5, 2)), np.array([2.0, -0.5]))


def test_d77_the_default_precision_serves(setting: Setting) -> None:
    x = setting.put([1.0], base=10, precision_fractional=3)
    assert setting.read(x.exp()) == pytest.approx(np.e, abs=5e-3)
    assert setting.read(x.reciprocal()) == pytest.approx(1, abs=5e-3)


def test_d78_encoding_rounds_and_keeps_the_dtype(torch_hook: Any) -> None:
    torch = torch_hook.torch
    assert torch.tensor([1.2346, -1.2346]).fix_precision().child.child.tolist() == [1235, -1235]
    for number in (float("nan"), float("inf")):
        with pytest.raises(PrecisionError, match="not finite"):
            torch.tensor([number]).fix_precision()
    assert torch.tensor([1.5], dtype=torch.float64).fix_precision().float_precision().dtype is torch.float64


@pytest.mark.filterwarnings("ignore::syft_mpc.checking.PrecisionWarning")
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "Adamax", "RMSprop"])
def test_d85_optimizers_step_on_shared_parameters(torch_hook: Any, name: str) -> None:
    torch, setting = torch_hook.torch, Setting(torch_hook)
    plain = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    private = setting.put([1.0, -2.0]).requires_grad_()
    for parameter in (plain, private):
        optimizer = getattr(torch.optim, name)([parameter], lr=0.05)
        for _ in range(2):
            optimizer.zero_grad()
            (parameter**2).sum().backward()
            optimizer.step()
    assert_close(setting.read(private.detach()), plain.detach(), 1e-2)


def test_d86_operations_that_were_missing(setting: Setting) -> None:
    torch = setting.hook.torch
    plain = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64)
    x = setting.put(plain.numpy())
    computations = [
        lambda x: x * 0.5,
        lambda x: x.mean(),
        lambda x: x.mean(0),
        lambda x: x.std(1),
        lambda x: (x * x).sqrt(),
        lambda x: x.softmax(1),
        lambda x: torch.stack([x, x]) @ torch.stack([x, x]),
        lambda x: x @ x[0],
        lambda x: torch.where(x > 0, x, -x),
    ]
    for compute in computations:
        assert_close(setting.read(compute(x)), compute(plain), 5e-3)
