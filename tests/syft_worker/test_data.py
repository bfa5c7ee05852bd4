"""The data of a worker, from files and loaders that its owner names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_core.exceptions import ConfigurationError, GetNotPermittedError  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_worker.data import DataSource, choose_backend, load  # noqa: E402


def load_one(text: str, any_hook: Any) -> Any:
    (tensor,) = load([DataSource.parse(text)], any_hook)
    return tensor


@pytest.fixture
def ages(tmp_path: Path) -> Path:
    np.save(tmp_path / "ages.npy", np.array([30.0, 40.0]))
    return tmp_path / "ages.npy"


def test_a_private_file_is_found_by_its_tags_and_does_not_leave(ages: Path, any_hook: Any) -> None:
    bob = VirtualWorker(any_hook, id="bob")
    bob.load_data(load([DataSource.parse(f"{ages}#ages,#2026:private=ana,bo")], any_hook))

    (pointer,) = bob.search(["#ages", "#2026"])

    with pytest.raises(GetNotPermittedError):
        pointer.get()
    any_hook.local_worker.user = "ana"
    assert pointer.get().child.child.tolist() == [30.0, 40.0]


def test_a_public_file_has_its_name_as_tag(ages: Path, any_hook: Any) -> None:
    bob = VirtualWorker(any_hook, id="bob")
    bob.load_data(load([DataSource.parse(str(ages))], any_hook))

    assert bob.search("#ages")[0].get().tolist() == [30.0, 40.0]


def test_private_to_nobody_is_possible(ages: Path, any_hook: Any) -> None:
    assert load_one(f"{ages}:private=", any_hook).child.allowed_users == frozenset()


def test_the_ids_are_the_same_after_a_restart(ages: Path, any_hook: Any) -> None:
    assert load_one(f"{ages}#a", any_hook).id == load_one(f"{ages}#b:private=ana", any_hook).id


def test_each_array_of_a_file_is_tagged_with_its_name(tmp_path: Path, any_hook: Any) -> None:
    np.savez(tmp_path / "patients.npz", ages=np.arange(3), ill=np.zeros(3))

    tensors = load([DataSource.parse(f"{tmp_path / 'patients.npz'}#patients")], any_hook)

    assert [tensor.tags for tensor in tensors] == [{"#patients", "#ages"}, {"#patients", "#ill"}]
    assert len({tensor.id for tensor in tensors}) == 2


def test_safetensors_are_loaded(tmp_path: Path, any_hook: Any) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    safetensors.save_file({"w": np.ones((2, 2), dtype=np.float32)}, tmp_path / "model.safetensors")

    tensor = load_one(f"{tmp_path / 'model.safetensors'}", any_hook)

    assert tensor.tags == {"#w"}
    assert tensor.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_weights_are_loaded_and_other_objects_are_not_unpickled(tmp_path: Path, torch_hook: Any) -> None:
    torch = torch_hook.torch
    torch.save({"w": torch.ones(2)}, tmp_path / "w.pt")
    torch.save(torch.nn.Linear(1, 1), tmp_path / "model.pth")

    assert load_one(f"{tmp_path / 'w.pt'}#model", torch_hook).tags == {"#model", "#w"}
    with pytest.raises(ConfigurationError, match="it is not a tensor or a dict of tensors without other"):
        load_one(f"{tmp_path / 'model.pth'}", torch_hook)


def test_a_csv_file_becomes_one_tensor(tmp_path: Path, any_hook: Any) -> None:
    (tmp_path / "p.csv").write_text("age,weight\n30,70.5\n40,80\n\n", encoding="utf-8-sig")

    tensor = load_one(str(tmp_path / "p.csv"), any_hook)

    assert tensor.tolist() == [[30.0, 70.5], [40.0, 80.0]]
    assert str(tensor.dtype).endswith("32" if any_hook.name == "torch" else "64")


def test_chosen_columns_of_integers_stay_integers(tmp_path: Path, any_hook: Any) -> None:
    (tmp_path / "p.csv").write_text("age,name,ill\n30,ann,1\n40,ben,0\n")

    (tensor,) = load([DataSource(tmp_path / "p.csv", columns=("ill", "age"))], any_hook)

    assert tensor.tolist() == [[1, 30], [0, 40]]
    assert str(tensor.dtype).endswith("int64")


def test_a_parquet_file_becomes_one_tensor(tmp_path: Path, any_hook: Any) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "p.parquet"
    parquet.write_table(pyarrow.table({"age": [30, 40], "w": [1.5, 2.5], "name": ["a", "b"], "gap": [1, None]}), path)

    (tensor,) = load([DataSource(path, columns=("w", "age"))], any_hook)

    assert tensor.tolist() == [[1.5, 30.0], [2.5, 40.0]]
    with pytest.raises(ConfigurationError, match="2 rows of column 'name' are not numbers; declare `schema.name`"):
        load_one(str(path), any_hook)
    with pytest.raises(ConfigurationError, match="1 rows of column 'gap' have no value; say what"):
        load([DataSource(path, columns=("gap",))], any_hook)


@pytest.fixture
def loaders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_loaders.py").write_text(
        "from numpy import ones\n"
        "from syft_core.hook.hook import current_hook\n"
        "def two(): return {name: current_hook().create_zeros(2) for name in 'ab'}\n"
        "def one(): return current_hook().create_zeros(3)\n"
        "def words(): return {'a': ['x']}\n"
        "def broken(): raise ValueError('patient 7')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_loaders", raising=False)


@pytest.mark.usefixtures("loaders")
def test_a_loader_of_the_owner_is_called(any_hook: Any) -> None:
    sources = [DataSource.parse("own_loaders:two#pair:private=ana"), DataSource.parse("own_loaders:one")]

    tensors = load(sources, any_hook)

    assert [tensor.tags for tensor in tensors] == [{"#pair", "#a"}, {"#pair", "#b"}, {"#one"}]


@pytest.mark.usefixtures("loaders")
@pytest.mark.parametrize(
    ("loader", "message"),
    [
        ("own_loaders:none", "cannot call the loader own_loaders:none: .*check the name"),
        ("no_such_module:none", "cannot call the loader no_such_module:none: .*PYTHONPATH"),
        ("own_loaders:words", "it has a list under 'a', which is not a tensor of .*; provide a tensor"),
        ("own_loaders:broken", "cannot load data with own_loaders:broken: it raised ValueError; call it in Python"),
    ],
)
def test_a_wrong_loader_is_named(loader: str, message: str, any_hook: Any) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_one(loader, any_hook)
    assert "patient" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", None, "a.npy: No such file or directory; check the path"),
        ("a.npy", b"\x93NUMPY garbage", "a.npy: it is not an array of numbers, as `numpy.save` writes it"),
        ("a.npz", b"PK garbage", "a.npz: it is not arrays of numbers"),
        ("a.safetensors", b"12345678", "a.safetensors: it is not a safetensors file"),
        ("a.parquet", b"PAR1", "a.parquet: it is not a table"),
        ("a.pkl", b"", r"a.pkl: \w+ reads no .pkl files; use one of .csv, .npy"),
        ("a", b"", r"a: \w+ reads no such files"),
        ("a.csv", b"", "a.csv: its first line is not a header"),
        ("a.csv", b"1,2\n3,4\n", "a.csv: its first line is not a header; add the names"),
        ("a.csv", b"x,y\n3\n", "a.csv: row 1 has 1 cells, and the header has 2"),
        ("a.csv", b"x,y\n1,secret\n", "a.csv: 1 rows of column 'y' are not numbers; declare `schema.y`"),
        ("a.csv", b"x,y\n1,\n", "a.csv: 1 rows of column 'y' have no value; say what becomes of them"),
        ("a.csv", b"x,x\n1,2\n", "a.csv: two columns have the same name"),
        ("a.csv", b"x\n99999999999999999999999999e999x\n", "1 rows of column 'x' are not numbers"),
        ("a.csv", b"x\n\xff\xfe\n", "a.csv: it is not a table .UnicodeDecodeError."),
    ],
)
def test_a_wrong_file_is_named_and_nothing_of_it_is_quoted(
    tmp_path: Path, name: str, content: bytes | None, message: str, any_hook: Any
) -> None:
    pytest.importorskip("safetensors")
    pytest.importorskip("pyarrow")
    if content is not None:
        (tmp_path / name).write_bytes(content)

    with pytest.raises(ConfigurationError, match=message) as caught:
        load_one(str(tmp_path / name), any_hook)
    assert "secret" not in str(caught.value)


def test_an_array_of_objects_is_not_unpickled(tmp_path: Path, any_hook: Any) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)

    with pytest.raises(ConfigurationError, match="it is not an array of numbers"):
        load_one(str(tmp_path / "a.npy"), any_hook)


def test_a_missing_extra_is_named(tmp_path: Path, any_hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)

    with pytest.raises(ConfigurationError, match="pyarrow is not installed; run `pip install '?pyarrow"):
        load_one(str(tmp_path / "a.parquet"), any_hook)


def test_unknown_columns_are_refused(tmp_path: Path, ages: Path, any_hook: Any) -> None:
    (tmp_path / "p.csv").write_text("age,ill\n30,1\n")

    with pytest.raises(ConfigurationError, match="cannot load column 'aeg' of .*: there is none; choose from age, ill"):
        load([DataSource(tmp_path / "p.csv", columns=("aeg",))], any_hook)
    with pytest.raises(ConfigurationError, match="it is not a table; leave `columns`"):
        load([DataSource(ages, columns=("age",))], any_hook)


def test_two_sources_with_one_name_are_refused(ages: Path, any_hook: Any) -> None:
    source = DataSource.parse(str(ages))

    with pytest.raises(ConfigurationError, match="another source has the same name"):
        load([source, source], any_hook)
    assert len(load([source, DataSource(ages, name="again")], any_hook)) == 2


def test_a_table_of_a_toml_file_says_the_same(tmp_path: Path) -> None:
    table = {"file": "ages.npy", "tags": ["#ages"], "private": ["ana"], "description": "in years"}

    source = DataSource.from_table(table, tmp_path)

    assert source == DataSource(tmp_path / "ages.npy", None, ("#ages",), ("ana",), "in years")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"file": "a.npy", "privat": ["ana"]}, "it has no option 'privat'; choose from file, loader, tags, private"),
        ({"file": "a.npy", "private": "ana"}, "cannot read the option 'private' of a data source: it is not a list"),
        ({"file": "a.npy", "private": [1]}, "it is not a list of texts"),
        ({"file": 3}, "cannot read the option 'file' of a data source: it is not a text"),
        ({}, "it needs a file or a loader"),
        ({"file": "a.npy", "loader": "a:b"}, "it needs a file or a loader"),
        ({"file": "a.npy", "tags": ["ages"]}, "cannot tag the data of .*a.npy: a tag is # and a word"),
    ],
)
def test_a_wrong_table_is_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        DataSource.from_table(table)


@pytest.mark.parametrize(
    "text", ["", "#ages", "a.npy#", "a.npy#ages:privat=ana", "a.npy#ages,ill", "a.npy:private=a:b", "a.npy:privat=ana"]
)
def test_a_wrong_specification_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        DataSource.parse(text)


def test_the_owner_chooses_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")

    assert choose_backend().name == "torch"
    assert choose_backend("numpy").name == "numpy"
