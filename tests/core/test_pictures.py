from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from toy_layers import Watcher

from syft_core.hook.forms import form
from syft_core.pictures import chain_html, form_of, html_table, text_table
from syft_core.pictures.sequence import Arrow, Repeated, fold, sequence_svg
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.private import PrivateTensor
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.seeing.ledger import Entry, Ledger

SECRET = 8675309.0


class SilentWorker(BaseWorker):
    """Fails when it receives a message."""

    def handle(self, message: Any, sender: Any) -> Any:
        raise AssertionError(f"a picture sent a message: {message}")


class Reticent(AbstractTensor):
    """Does not show what is below it."""

    def __repr__(self) -> str:
        return "Reticent>(nothing to see)"


class Branching(AbstractTensor):
    """Has several children, by the name of their worker."""


@pytest.fixture
def bob(hook: ToyHook) -> SilentWorker:
    return SilentWorker(hook, id="bob")


def pointer_to(worker: BaseWorker, hook: ToyHook, id: int = 17) -> PointerTensor:
    return PointerTensor(worker, id, hook.attributes, owner=hook.local_worker, garbage_collect_data=False)


def texts(page: str) -> list[str]:
    """Return the visible text of each box."""
    return [text for text in re.split(r"<[^>]*>", page) if text]


def test_a_chain_is_drawn_link_by_link_with_its_local_values(hook: ToyHook) -> None:
    x = Watcher().on(toy.Vector([1.0, 2.0]))

    page = chain_html(x)

    assert page is not None
    assert texts(page) == ["Wrapper", "▸", "Watcher", "▸", "Vector([1.0, 2.0])", "Vector[2]"]


def test_a_layer_that_hides_its_child_hides_it_in_the_picture(hook: ToyHook) -> None:
    layer = Reticent()
    layer.child = toy.Vector([SECRET])

    page = chain_html(layer)

    assert page is not None
    assert texts(page) == ["Reticent&gt;(nothing to see)"]


def test_a_pointer_is_drawn_from_owner_to_location_without_a_message(hook: ToyHook, bob: SilentWorker) -> None:
    pointer = pointer_to(bob, hook)

    page = chain_html(pointer)

    assert page is not None
    assert texts(page)[:4] == ["PointerTensor", f"me:{pointer.id}", "⇢", "bob:17"]


def test_a_wrapped_pointer_is_drawn_without_a_message(hook: ToyHook, bob: SilentWorker) -> None:
    page = chain_html(hook.attributes.wrapper(pointer_to(bob, hook)))

    assert texts(str(page))[:3] == ["Wrapper", "▸", "PointerTensor"]


def test_a_pointer_to_a_deleted_object_is_marked(hook: ToyHook, bob: SilentWorker) -> None:
    pointer = pointer_to(bob, hook)
    pointer.gone = "it was fetched by 'me'"

    assert "gone: it was fetched" in str(chain_html(pointer))


def test_branches_are_drawn_one_below_the_other(hook: ToyHook, bob: SilentWorker) -> None:
    layer = Branching()
    layer.child = {"bob": pointer_to(bob, hook, 1), "here": toy.Vector([SECRET])}

    page = str(chain_html(layer))

    assert "bob:1" in page
    assert "Vector[1]" in page
    assert str(SECRET) not in page


def test_a_pointer_to_several_workers_is_drawn_with_all_of_them(hook: ToyHook, bob: SilentWorker) -> None:
    alice = SilentWorker(hook, id="alice")
    both = MultiPointerTensor([pointer_to(bob, hook, 1), pointer_to(alice, hook, 2)])

    page = str(chain_html(hook.attributes.wrapper(both)))

    assert texts(page)[:3] == ["Wrapper", "▸", "MultiPointerTensor"]
    assert {"bob:1", "alice:2"} <= set(texts(page))


def test_a_private_tensor_shows_no_values(hook: ToyHook) -> None:
    x = PrivateTensor(["bob"]).on(toy.Vector([SECRET]))

    page = str(chain_html(x))

    assert "PrivateTensor" in page
    assert str(SECRET) not in page


def test_the_form_of_a_remote_object_is_shown_if_known(hook: ToyHook, bob: SilentWorker) -> None:
    pointer = pointer_to(bob, hook)
    assert texts(str(chain_html(pointer)))[-1] == "bob:17"
    pointer.location.describe = lambda *_: [form((2, 3), (3, 1), float)]

    assert texts(str(chain_html(pointer)))[-1] == "[2, 3]"


def test_a_plain_tensor_has_no_picture() -> None:
    assert chain_html(toy.Vector([1.0])) is None


def test_the_picture_of_a_worker_names_its_objects_and_no_values(hook: ToyHook, bob: SilentWorker) -> None:
    bob.register_obj(Watcher().on(toy.Vector([SECRET, SECRET])), 5)
    bob.object_store.tag(5, ["#houses"], "Prices\nin thousands")
    bob.register_obj(pointer_to(SilentWorker(hook, id="alice"), hook), 6)

    page = bob._repr_html_()

    assert texts(page)[0] == "SilentWorker bob: 2 objects"
    assert {"5", "Watcher&gt;Vector[2]", "#houses", "Prices", "6", "→ alice:17"} <= set(texts(page))
    assert str(SECRET) not in page


def test_the_picture_of_a_worker_shows_who_may_receive_a_private_object(bob: SilentWorker) -> None:
    bob.register_obj(PrivateTensor(["alice", "carol"]).on(toy.Vector([1.0])), 5)
    bob.register_obj(PrivateTensor().on(toy.Vector([1.0])), 6)

    shown = texts(bob._repr_html_())

    assert "private to" in shown
    assert {"alice, carol", "nobody"} <= set(shown)


def test_a_worker_without_objects_shows_its_count(bob: SilentWorker) -> None:
    assert texts(bob._repr_html_()) == ["SilentWorker bob: 0 objects"]


def test_notebooks_find_the_pictures(hook: ToyHook) -> None:
    x = Watcher().on(toy.Vector([1.0]))

    assert x._repr_html_() == chain_html(x)


@pytest.mark.parametrize("words", ["<script>alert(1)</script>", '"><img src=x>', "a & b"])
def test_text_from_peers_is_escaped(hook: ToyHook, words: str) -> None:
    worker = SilentWorker(hook, id=words)
    worker.register_obj(Watcher().on(toy.Vector([1.0])), words)
    worker.object_store.tag(words, [words], words)
    x = Watcher().on(toy.Vector([1.0])).tag(words).describe(words)
    ledger = Ledger(words)
    ledger.record(Entry(0.0, words, words, words, (words,), words, words))
    arrow = Arrow(words, words, "data", words, words, words)

    pages = [
        worker._repr_html_(),
        chain_html(x),
        ledger._repr_html_(),
        sequence_svg([words], [Repeated((arrow,))], words),
    ]

    for page in pages:
        assert page is not None
        assert words not in page


def test_a_long_table_is_truncated_with_a_note() -> None:
    page = html_table("many", ("number",), [(str(number),) for number in range(12)], limit=10)

    assert page.count("<tr>") == 11
    assert "and 2 more" in page


def test_a_text_table_is_as_wide_as_its_cells() -> None:
    assert text_table(("a", "b"), [("long", "x"), ("y", "z")]) == "a     b\nlong  x\ny     z"


def test_the_form_of_a_chain_names_layers_and_the_shape_of_the_end(hook: ToyHook, bob: SilentWorker) -> None:
    assert form_of(Watcher().on(toy.Vector([1.0, 2.0]))) == "Watcher>Vector[2]"
    assert form_of(hook.attributes.wrapper(pointer_to(bob, hook))) == "→ bob:17"
    assert form_of(None) == "NoneType"


@pytest.mark.parametrize(
    ("items", "folded"),
    [
        ("", []),
        ("abc", [("abc", 1)]),
        ("aaaa", [("a", 4)]),
        ("xababab!", [("x", 1), ("ab", 3), ("!", 1)]),
        ("aabaab", [("aab", 2)]),
    ],
)
def test_repetitions_are_folded(items: str, folded: list[tuple[str, int]]) -> None:
    assert [("".join(block), times) for block, times in fold(items, str)] == folded


def test_folding_keeps_every_item() -> None:
    items = [number * number % 7 for number in range(300)]

    assert [item for block, times in fold(items, lambda item: item) for item in block * times] == items


def test_a_diagram_has_a_lifeline_for_each_actor_and_an_arrow_for_each_message() -> None:
    there, back = (
        Arrow("me", "bob", "data", "send #1"),
        Arrow("bob", "me", "departure", "get #1", "Vector[2]", "all of it"),
    )

    drawn = sequence_svg(["me", "bob"], [Repeated((there, back)), Repeated((there,), times=3)], "a note")

    assert drawn.count('class="life"') == 2
    assert drawn.count("<g>") == 3
    assert drawn.count('class="actor"') == 2
    assert "3 ×" in drawn  # noqa: RUF001  # times
    assert "<title>all of it</title>" in drawn
    assert "data leaves a worker" in drawn


def boxes_of_names(drawn: str) -> list[tuple[float, float]]:
    """Return the start and the end of the boxes of the names."""
    boxes = re.findall(r'class="head" x="([\d.]+)" y="18" width="([\d.]+)"', drawn)
    return [(float(x), float(x) + float(width)) for x, width in boxes]


def test_long_names_are_truncated_and_do_not_overlap() -> None:
    name = "the-hospital-with-a-name-that-goes-on-and-on"

    drawn = sequence_svg([name, "bob", name[::-1]], [Repeated((Arrow("bob", "bob", "compute", "x" * 90),))])

    boxes = boxes_of_names(drawn)
    assert boxes[0][0] > 0
    assert all(left[1] < right[0] for left, right in pairwise(boxes))
    assert f"<title>{name}</title>" in drawn
    assert f">{name[:25]}…<" in drawn
    width = float(re.findall(r'viewBox="0 0 ([\d.]+)', drawn)[0])
    assert boxes[-1][1] < width


def test_a_note_fits_into_the_picture() -> None:
    note = "102 messages, 1 departure; 42 later messages not shown"

    drawn = sequence_svg(["me"], [], note)

    assert float(re.findall(r'viewBox="0 0 ([\d.]+)', drawn)[0]) > 6 * len(note)


def test_a_repeated_message_is_one_arrow_with_a_count() -> None:
    drawn = sequence_svg(["me", "bob"], [Repeated((Arrow("me", "bob", "talk", "ask", times=3),))])

    assert ">ask (3 ×)<" in drawn  # noqa: RUF001  # times


def test_a_failure_has_the_colour_of_failures() -> None:
    drawn = sequence_svg(["me", "bob"], [Repeated((Arrow("me", "bob", "failure", "get #1", "refused"),))])

    assert 'class="label failed"' in drawn
    assert 'class="detail failed"' in drawn


def test_a_diagram_loads_nothing() -> None:
    drawn = sequence_svg(["me"], [Repeated((Arrow("me", "me", "talk", "think"),))])

    assert not re.search(r"href|url\(|<script|@import", drawn)
    assert re.findall(r"https?://[^\"]*", drawn) == ["http://www.w3.org/2000/svg"]
