import doctest
import re
from pathlib import Path

from syft_core.serde import Limits, codecs

PAGE = Path(__file__).parents[2] / "docs" / "serde.md"


def test_the_examples_in_the_docs_run():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried
    assert not failed


def test_the_docs_state_the_limits():
    text = PAGE.read_text()
    for name in vars(Limits()):
        assert f"`{name}`" in text


def test_the_docs_cover_every_wire_code():
    rows = re.findall(r"^\| (\d+)-(\d*) \|", PAGE.read_text(), re.MULTILINE)
    covered = [range(int(first), int(last) + 1 if last else 2**31) for first, last in rows]
    assert all(any(code in span for span in covered) for code in codecs.by_code)
