"""What one version of a message looks like: the schema's annotations, resolved for that version.

Invariants:
  - `Layout.fields` holds every field of the class, in wire order; fields that the version lacks are marked absent and
    decode to their default;
  - tagged fields occur only in flexible versions.
"""

from enum import Enum
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from msgspec.structs import replace

from strandline.base.value import Value
from strandline.wire.schema import Group, Message, Nullable, Primitive, Tag, V, parse_versions

# Kafka's fixed-width types in struct's letters.
FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "float64": "d",
    "uuid": "16s",
}
WIDTH = {"?": 1, "b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "q": 8, "d": 8, "16s": 16}


class Shape(Enum):
    FIXED = "fixed"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"
    GROUP = "group"
    ARRAY = "array"


class Layout(Value, frozen=True):
    """A message or group in one version."""

    cls: type[Any]
    flexible: bool
    fields: tuple["Field", ...]

    @property
    def inline(self) -> list["Field"]:
        return [field for field in self.fields if field.present and field.tag is None]

    @property
    def tagged(self) -> list["Field"]:
        tagged = [field for field in self.fields if field.present and field.tag is not None]
        assert self.flexible or not tagged, "tagged fields occur only in flexible versions"
        assert len({field.tag for field in tagged}) == len(tagged), "a tag names one field"
        return sorted(tagged, key=lambda field: field.tag or 0)

    def size_min(self) -> int:
        """The fewest bytes that a value can take; for the check of array counts."""
        return max(1, sum(field.type.size_min() for field in self.inline) + (1 if self.flexible else 0))


class Type(Value, frozen=True):
    shape: Shape
    flexible: bool
    nullable: bool = False
    letter: str = ""  # of a FIXED type
    layout: Layout | None = None  # of a GROUP
    null: int = -1  # the byte before a nullable GROUP that says that there is none; 1 says that there is one
    item: "Type | None" = None  # of an ARRAY

    def size_min(self) -> int:
        match self.shape:
            case Shape.FIXED:
                return WIDTH[self.letter]
            case Shape.GROUP:
                assert self.layout is not None
                return 1 if self.nullable else self.layout.size_min()
            case Shape.STRING:
                return 1 if self.flexible else 2
            case _:
                return 1 if self.flexible else 4


class Field(Value, frozen=True):
    name: str
    type: Type
    present: bool
    tag: int | None
    default: Any


def layout_of(cls: type[Message], version: int) -> Layout:
    """The layout of a message in one of its versions."""
    assert version in cls.versions, f"{cls.__name__} has no version {version}"
    return _layout(cls, version, cls.versions[-1], version in cls.flexible)


def _layout(cls: type[Any], version: int, highest: int, flexible: bool) -> Layout:
    hints = get_type_hints(cls, include_extras=True)
    defaults = cls()
    fields = tuple(
        _field(name, hints[name], getattr(defaults, name), version, highest, flexible) for name in cls.__struct_fields__
    )
    return Layout(cls, flexible, fields)


def _field(name: str, hint: Any, default: Any, version: int, highest: int, flexible: bool) -> Field:
    base, notes = _split(hint)
    exists, nullable, tag = True, False, None
    for note in notes:
        match note:
            case V(versions):
                exists = version in parse_versions(versions, highest)
            case Nullable(versions):
                nullable = version in parse_versions(versions, highest)
            case Tag(number, versions):
                if flexible and (versions is None or version in parse_versions(versions, highest)):
                    tag = number
            case _:
                assert isinstance(note, Primitive), f"{name}: unknown note {note!r}"
    try:
        type_ = _type(base, notes, nullable, version, highest, flexible)
    except TypeError as error:
        raise TypeError(f"field {name}: {error}") from None
    if tag is not None and type_.shape is Shape.GROUP:
        type_ = replace(type_, null=0)  # Kafka writes this byte as an unsigned varint if the field has a tag
    assert tag is None or (flexible and tag >= 0)
    assert nullable or not exists or default is not None, f"{name}: null is a default that cannot be written"
    return Field(name, type_, exists, tag, default)


def _split(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(hint) is Annotated:
        base, *notes = get_args(hint)
        return base, tuple(notes)
    return hint, ()


def _type(base: Any, notes: tuple[Any, ...], nullable: bool, version: int, highest: int, flexible: bool) -> Type:
    for note in notes:
        if isinstance(note, Primitive):
            if note.name in FIXED:
                assert not nullable, f"{note.name} has no null"
                return Type(Shape.FIXED, flexible, letter=FIXED[note.name])
            return Type(Shape(note.name), flexible, nullable)
    if get_origin(base) is not tuple and type(None) in get_args(base):
        (base,) = (arg for arg in get_args(base) if arg is not type(None))
        base, _ = _split(base)
    if get_origin(base) is tuple:
        item, *rest = get_args(base)
        if rest != [...]:
            raise TypeError(f"an array is tuple[X, ...], not {base}")
        item_base, item_notes = _split(item)
        return Type(
            Shape.ARRAY,
            flexible,
            nullable,
            item=_type(item_base, item_notes, False, version, highest, flexible),
        )
    if isinstance(base, type) and issubclass(base, Group):
        return Type(Shape.GROUP, flexible, nullable, layout=_layout(base, version, highest, flexible))
    raise TypeError(f"{base!r} is not a wire type")
