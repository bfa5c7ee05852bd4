from __future__ import annotations

import copy
from typing import Any

import pytest

np = pytest.importorskip("numpy")
from syft_core.exceptions import WrapperLeakError  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_numpy.wrapper import Wrapper  # noqa: E402
from tests.surface.checks import Raised, attempt, map_tensors, tensors  # noqa: E402
from tests.surface.numpy_surface import NumpySurface  # noqa: E402


def chain(values: Any) -> Any:
    return LoggingTensor().on(np.array(values))


def data(wrapper: Any) -> Any:
    return wrapper.child.child


def test_functions_ufuncs_and_their_methods_pass(hook: Any) -> None:
    x = chain([[1.0, 2.0], [3.0, 4.0]])
    assert data(np.add.reduce(x, axis=1)).tolist() == [3.0, 7.0]
    assert data(np.einsum("ij->ji", x)).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    result = np.linalg.svd(x)
    assert type(result).__name__ == "SVDResult"
    assert type(result.S.child) is LoggingTensor
    np.add.at(x, (0, 0), 10.0)
    assert data(x)[0, 0] == 11.0
    assert data(np.add(x, 1, where=np.array([[True, False], [False, True]]), out=chain(np.zeros((2, 2))))).shape == (
        2,
        2,
    )


def test_out_and_in_place_keep_the_object(hook: Any) -> None:
    x, out = chain([1.0, 2.0]), chain([0.0, 0.0])
    assert np.multiply(x, 3, out=out) is out
    assert data(out).tolist() == [3.0, 6.0]
    same = x
    x -= 1
    assert x is same
    assert data(x).tolist() == [0.0, 1.0]


def test_reductions_stay_in_the_chain(hook: Any) -> None:
    total = chain([1.5, 2.5]).sum()
    assert str(total) == "(Wrapper)>LoggingTensor>array(4.)"
    assert float(total.round()) == 4.0


def test_indexing_with_chains(hook: Any) -> None:
    x = chain([1.0, 2.0, 3.0])
    assert data(x[x > 1.5]).tolist() == [2.0, 3.0]
    x[chain([0, 2])] = 9.0
    assert data(x).tolist() == [9.0, 2.0, 9.0]
    assert 2.0 in x


def test_copies(hook: Any) -> None:
    x = chain([1.0])
    for twin in (copy.copy(x), copy.deepcopy(x), x.copy()):
        assert type(twin.child) is LoggingTensor
        assert data(twin) is not data(x)


def test_the_form_of_an_array_cannot_be_set_on_its_wrapper(hook: Any) -> None:
    x = chain([1.0, 2.0])
    with pytest.raises(AttributeError, match="cannot set 'shape' of a wrapper: it belongs to the data"):
        x.shape = (2, 1)
    assert x.shape == (2,)


def test_divmod(hook: Any) -> None:
    whole, rest = divmod(chain([7.0, 8.0]), 3)
    assert (data(whole).tolist(), data(rest).tolist()) == ([2.0, 2.0], [1.0, 2.0])
    assert data(divmod(7, chain([3.0]))[1]).tolist() == [1.0]


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def pointer(hook: Any, request: pytest.FixtureRequest) -> Any:
    carol = VirtualWorker(hook, id="carol", serialize=request.param)
    return hook.array([[0.0], [1.0], [2.0], [3.0]]).tag("#x").send(carol)


def test_a_pointer_is_not_converted_to_an_array(pointer: Any) -> None:
    for convert in (np.asarray, np.array, lambda p: np.asarray(p, "f4"), lambda p: np.array([p])):
        with pytest.raises(WrapperLeakError, match=r"fetch it with `.get\(\)` first"):
            convert(pointer)


def test_no_operation_makes_a_wrapper_around_data_that_is_here(hook: Any) -> None:
    surface, ran = NumpySurface(), set()
    for op in surface.ops:
        for case in surface.cases(op):
            args, kwargs = map_tensors(surface, lambda x: hook.array(x) if x.ndim else x, (case.args, case.kwargs))
            result = attempt(case.call, args, kwargs)
            if not isinstance(result, Raised):
                ran.add(op.name)
                assert Wrapper not in set(map(type, tensors(surface, result))), op.name

    assert len(ran) > 400
