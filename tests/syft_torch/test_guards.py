"""Guards on plain tensors: what would crash torch is refused or computed in another way, and the rest is torch's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch.guards import _replace_divisor, add_guard  # noqa: E402

SMALLEST = torch.iinfo(torch.int32).min


@pytest.fixture
def run(hook: Any) -> Any:
    """Return a function that runs an operation of the table with its guard."""
    return lambda name, *args, **kwargs: add_guard(hook.attributes.ops.look_up(name))(*args, **kwargs)


def test_most_operations_need_no_guard(hook: Any) -> None:
    assert add_guard(hook.attributes.ops.look_up("torch.add")) is None


@pytest.mark.parametrize("name", ["torch.floor_divide", "torch.remainder", "torch.fmod"])
def test_the_smallest_integer_divided_by_minus_one_wraps_around(run: Any, name: str) -> None:
    x = torch.tensor([SMALLEST, 6, SMALLEST], dtype=torch.int32)
    y = torch.tensor([-1, -1, 2], dtype=torch.int32)

    found = run(name, x, y)

    assert found.dtype is torch.int32
    assert found[0] == (SMALLEST if name == "torch.floor_divide" else 0)
    assert found[1:].tolist() == getattr(torch, name.removeprefix("torch."))(x[1:], y[1:]).tolist()


def test_the_kernel_never_divides_the_smallest_integer_by_minus_one(hook: Any) -> None:
    op = hook.attributes.ops.look_up("torch.floor_divide")
    x = torch.tensor([SMALLEST, 6, SMALLEST], dtype=torch.int32)
    y = torch.tensor([-1, -1, 2], dtype=torch.int32)

    assert _replace_divisor(op, x, y).tolist() == [1, -1, 2]
    assert _replace_divisor(op, x, -1).tolist() == [1, -1, 1]
    assert _replace_divisor(op, x[1:2], y) is y
    assert _replace_divisor(op, x.float(), y) is y


def test_divisors_that_are_minus_one_in_the_dtype_of_the_result_are_found(run: Any) -> None:
    x = torch.tensor([SMALLEST], dtype=torch.int32)

    assert run("torch.remainder", x, 2**32 - 1).tolist() == [0]
    assert run("torch.floor_divide", input=x, other=-1).tolist() == [SMALLEST]


@pytest.mark.parametrize("divisor", [2, -1, 0.5, torch.tensor([-1])])
def test_other_divisions_are_those_of_torch(run: Any, divisor: Any) -> None:
    x = torch.tensor([7, -7])

    assert run("torch.remainder", x, divisor).tolist() == torch.remainder(x, divisor).tolist()
    assert run("torch.div", x, divisor).tolist() == torch.div(x, divisor).tolist()


def test_sums_of_integers_are_not_divided_by_minus_one(run: Any) -> None:
    images = torch.ones(1, 1, 4, 4, dtype=torch.int64)

    with pytest.raises(ValueError, match="negate the result instead"):
        run("torch.nn.functional.avg_pool2d", images, 2, divisor_override=-1)
    with pytest.raises(OverflowError, match="its divisor has more than 32 bits"):
        run("torch.nn.functional.avg_pool2d", images, 2, divisor_override=2**33)
    assert run("torch.nn.functional.avg_pool2d", images.float(), 2, divisor_override=-1).sum() == -16.0


def test_a_recurrent_layer_with_weights_of_a_wrong_shape_is_refused(run: Any) -> None:
    x, h = torch.ones(2, 3), torch.ones(2, 4)
    weights = torch.ones(4, 3), torch.ones(4, 4), torch.ones(4), torch.ones(4)

    assert run("torch.rnn_tanh_cell", x, h, *weights).shape == (2, 4)
    with pytest.raises(RuntimeError):
        run("torch.rnn_tanh_cell", x, h, torch.ones(4, 30), *weights[1:])


@pytest.mark.parametrize("offsets", [[2, 0], [0, 9], [-1, 1]])
def test_bags_read_nothing_beyond_the_indices(run: Any, offsets: list[int]) -> None:
    weight, indices = torch.ones(5, 2), torch.tensor([0, 1, 2])

    assert run("torch.embedding_bag", weight, indices, torch.tensor([0, 2]))[0].tolist() == [[2.0, 2.0], [1.0, 1.0]]
    with pytest.raises(ValueError, match="its offsets are not in ascending order or exceed the input"):
        run("torch.embedding_bag", weight, indices, torch.tensor(offsets))


def test_a_grid_of_combinations_is_limited(run: Any) -> None:
    x = torch.arange(4)

    assert run("torch.combinations", x).shape == (6, 2)
    with pytest.raises(OverflowError, match="use fewer elements or a smaller `r`"):
        run("torch.combinations", torch.arange(1000), 5)
    with pytest.raises(OverflowError, match="65 out of 4"):
        run("torch.combinations", x, 65)


def test_a_weight_is_scaled_with_a_length_for_each_row(run: Any) -> None:
    v = torch.ones(3, 2)

    assert run("torch._weight_norm", v, torch.ones(3, 1), 0).shape == (3, 2)
    with pytest.raises(ValueError, match="g has 1 elements, and v has another number along dim 0"):
        run("torch._weight_norm", v, torch.ones(1, 1), 0)
    with pytest.raises(ValueError, match="on an empty tensor"):
        run("torch._weight_norm", v, torch.ones(0), 0)


def test_the_median_of_an_expanded_tensor_reads_its_own_memory(run: Any) -> None:
    x = torch.tensor([3.0]).expand(50)

    assert run("torch.median", x).item() == 3.0
    assert run("torch.nanmedian", x[None], 1).values.tolist() == [3.0]


def test_a_part_of_a_sparse_tensor_is_a_copy(run: Any) -> None:
    x = torch.eye(2).to_sparse()

    run("torch.Tensor._values", x).zero_()

    assert x.to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_packed_sequence_without_steps_does_not_end_the_process(run: Any, kind: str, device: str) -> None:
    layer = getattr(torch.nn, kind)(3, 2, device=device)
    state = torch.zeros(1, 3, 2, device=device)
    name = "rnn_tanh" if kind == "RNN" else kind.lower()
    data, sizes = torch.zeros(5, 3, device=device), torch.zeros(0, dtype=torch.int64, device=device)
    rest = ((state, state) if kind == "LSTM" else state, list(layer.parameters()), True, 1, 0.0, False, False)

    with pytest.raises(ValueError, match=f"cannot run '{name}': `batch_sizes` is empty; pack at least one step"):
        run(f"torch.{name}", data, sizes, *rest)
    with pytest.raises(ValueError, match="`batch_sizes` is empty"):
        run(f"torch.{name}", data, *rest, batch_sizes=sizes)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", ["torch.select", "torch.Tensor.select"])
def test_a_nested_tensor_has_no_dims_that_count_from_its_end(run: Any, name: str) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(2, 3)])

    assert run(name, nested, 2, 0).size(0) == 2
    for dim in (-1, -2, 3):
        with pytest.raises(ValueError, match="cannot run 'select' on a nested tensor: dim .* is not one of 0 to 2"):
            run(name, nested, dim, 0)
    with pytest.raises(ValueError, match="is not one of"):
        run(name, nested, dim=-1, index=0)
    assert run(name, torch.ones(2, 3), -1, 0).shape == (2,)
