import msgpack
import pytest

from syft_core.exceptions import AlreadyRegisteredError
from syft_core.serde import Codec, CodecTable, SerdeError, codecs, deserialize, register_codec, serialize
from syft_core.serde.context import DEFAULT
from syft_core.serde.structure import read_structure, write_structure


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return type(other) is Point and (self.x, self.y) == (other.x, other.y)

    __hash__ = None


class Shape:
    def __init__(self, sides):
        self.sides = sides


class Square(Shape):
    pass


class Stranger:
    pass


POINT = register_codec(
    Point, code=7001, simplify=lambda p, context: (p.x, p.y), detail=lambda payload, context: Point(*payload)
)


def pass_on(obj, context):
    return obj


def table_with(*entries):
    table = CodecTable()
    for codec in entries:
        table.register(codec)
    return table


def test_a_users_class_can_be_sent():
    assert deserialize(serialize({"where": [Point(1, (2, 3))]})) == {"where": [Point(1, (2, 3))]}


def test_the_error_for_a_class_without_a_codec_shows_how_to_write_one():
    with pytest.raises(SerdeError, match=r"cannot serialize a .*Stranger: it has no codec.*`register_codec\(Stranger,"):
        serialize([Stranger()])


def test_a_subclass_of_a_builtin_is_refused_with_the_reason():
    class MyList(list):
        pass

    with pytest.raises(SerdeError, match="derives from list, whose codec would lose the class"):
        serialize(MyList())


def test_the_error_for_an_unknown_class_suggests_similar_names():
    kind = type("Poind", (), {"__module__": Point.__module__, "__qualname__": "Poind"})
    with pytest.raises(SerdeError, match=r"similar names: .*Point"):
        serialize(kind())


def test_a_wire_code_cannot_be_registered_twice():
    table = table_with(Codec(Point, 10, pass_on, pass_on))
    with pytest.raises(AlreadyRegisteredError, match="wire code 10"):
        table.register(Codec(Shape, 10, pass_on, pass_on))
    assert Shape not in table.by_type


def test_a_type_has_one_codec():
    table = table_with(Codec(Point, 10, pass_on, pass_on))
    with pytest.raises(AlreadyRegisteredError, match="Point"):
        table.register(Codec(Point, 11, pass_on, pass_on))
    assert 11 not in table.by_code


def test_registering_the_same_codec_again_changes_nothing():
    codec = Codec(Point, 10, pass_on, pass_on)
    table = table_with(codec, codec)
    assert list(table.by_type) == [Point]
    assert table.by_type[Point] is codec


def test_only_a_codec_with_subclasses_covers_subclasses():
    alone = table_with(Codec(Shape, 10, pass_on, pass_on))
    with pytest.raises(SerdeError, match="Square"):
        alone.for_type(Square)

    family = Codec(Shape, 10, pass_on, pass_on, subclasses=True)
    assert table_with(family).for_type(Square) is family


def test_an_exact_codec_registered_later_wins_over_the_base_classes():
    table = table_with(Codec(Shape, 10, pass_on, pass_on, subclasses=True))
    assert table.for_type(Square).code == 10

    table.register(Codec(Square, 11, pass_on, pass_on))

    assert table.for_type(Square).code == 11


@pytest.mark.parametrize("code", [-1, 0, 2, 5, 999])
def test_reserved_codes_are_not_for_users(code):
    with pytest.raises(SerdeError, match="codes below 1000 are reserved"):
        register_codec(Stranger, code=code, simplify=pass_on, detail=pass_on)


@pytest.mark.parametrize("code", [True, "1000", 2**31])
def test_a_wire_code_must_be_a_valid_int(code):
    with pytest.raises(SerdeError):
        table_with(Codec(Stranger, code, pass_on, pass_on))


def test_a_codec_needs_a_class_and_functions():
    with pytest.raises(SerdeError, match="must be a class"):
        table_with(Codec(Point(1, 2), 10, pass_on, pass_on))
    with pytest.raises(SerdeError, match="must be functions"):
        table_with(Codec(Point, 10, None, pass_on))


def test_a_simplify_that_does_not_return_a_tuple_is_named():
    class Loose:
        pass

    register_codec(Loose, code=7002, simplify=lambda obj, context: "text", detail=pass_on)
    with pytest.raises(SerdeError, match="Loose: its simplify returned a str; return a tuple"):
        serialize(Loose())


def test_a_failing_detail_becomes_a_serde_error_with_its_cause():
    class Fragile:
        pass

    def fail(payload, context):
        raise KeyError("inside")

    register_codec(Fragile, code=7003, simplify=lambda obj, context: (), detail=fail)
    with pytest.raises(SerdeError, match=r"cannot rebuild a .*Fragile.*\(KeyError\).*7003") as caught:
        deserialize(serialize(Fragile()))
    assert isinstance(caught.value.__cause__, KeyError)


def test_the_error_for_an_unknown_code_names_what_to_load():
    class Unlisted:
        pass

    codec = Codec(Unlisted, 8001, lambda obj, context: (1,), pass_on)
    table = table_with(*codecs.by_code.values(), codec)
    structure, buffers = write_structure(Unlisted(), DEFAULT, table)
    with pytest.raises(SerdeError, match="wire code 8001: no codec is registered for it; load the backend or plugin"):
        read_structure(structure, buffers, DEFAULT, codecs)


def test_a_shared_object_is_sent_once_and_stays_one():
    class Node:
        def __init__(self, name):
            self.name = name

    register_codec(
        Node,
        code=7004,
        simplify=lambda node, context: (node.name,),
        detail=lambda payload, context: Node(*payload),
        shared=True,
    )
    one, two = Node("a" * 500), Node("b")

    first, second, third, fourth = deserialize(serialize([one, two, one, two]))

    assert first is third
    assert second is fourth
    assert first is not second
    assert len(serialize([one] * 10)) < 700


def test_a_separate_object_shares_nothing_with_what_surrounds_it():
    class Leaf:
        pass

    class Command:
        def __init__(self, *parts):
            self.parts = parts

    table = table_with(
        *codecs.by_code.values(),
        Codec(Leaf, 8014, lambda leaf, context: (), lambda payload, context: Leaf(), shared=True),
        Codec(Command, 8015, lambda c, context: c.parts, lambda payload, context: Command(*payload), separate=True),
    )
    leaf = Leaf()
    sent = write_structure([leaf, Command(leaf, [leaf]), Command(leaf), leaf], DEFAULT, table)

    first, one, two, last = read_structure(*sent, DEFAULT, table)

    assert first is last
    assert one.parts[0] is one.parts[1][0]
    assert len({first, one.parts[0], two.parts[0]}) == 3
    outside = msgpack.packb([3, [8014], [8015, [1, 0]]])
    with pytest.raises(SerdeError, match="its structure is malformed"):
        read_structure(outside, [], DEFAULT, table)
