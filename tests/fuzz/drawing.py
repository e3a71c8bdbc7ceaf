"""Values drawn from a fuzzer's bytes: the same bytes give the same values, and a changed byte changes little.

A message is drawn from its schema, so that it is well formed whatever its values are. When the bytes are used up, every
draw is zero, so that each input ends.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from strandline.sim.hostile import BITS, FLOAT, FLOATS, TEXT, UNSIGNED, extremes
from strandline.wire.codec_plan import Field, Layout, Shape, Type

T = TypeVar("T")
ITEMS = (0, 1, 1, 1, 2, 3)
LONG = 300  # items of the arrays that are long now and then


class Draw:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.was_long = False

    def byte(self) -> int:
        at = self.at
        self.at += 1
        return self.data[at] if at < len(self.data) else 0

    def number(self, size: int) -> int:
        return int.from_bytes(bytes([self.byte() for _ in range(size)]), "big")

    def below(self, bound: int) -> int:
        assert bound > 0
        return self.number(1 if bound <= 256 else 2) % bound

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def chance(self, of_256: int) -> bool:
        """False when the bytes are used up."""
        return self.byte() >= 256 - of_256

    def some(self, size_max: int) -> bytes:
        size = self.below(size_max + 1)
        taken = self.data[self.at : self.at + size]
        self.at += size
        return taken

    def rest(self) -> bytes:
        taken = self.data[self.at :]
        self.at = len(self.data)
        return taken


class Vocabulary:
    """What somebody knows who makes up a message: values by the names of fields. Plain draws know nothing."""

    def number(self, draw: Draw, name: str, letter: str) -> int:
        if draw.chance(100):
            found = draw.one_of(extremes(letter))
            assert isinstance(found, int)
            return found
        bits = BITS.get(letter) or UNSIGNED[letter]
        raw = draw.number(1) if draw.chance(200) else draw.number(bits // 8)
        return raw if letter in UNSIGNED else (raw + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))

    def text(self, draw: Draw, name: str) -> str:
        if draw.chance(60):
            return str(draw.one_of(extremes(TEXT)))
        return draw.some(12).decode(errors="replace")

    def uuid(self, draw: Draw, name: str) -> bytes:
        return draw.number(2).to_bytes(16, "big")

    def blob(self, draw: Draw, name: str) -> bytes:
        return draw.some(40)

    def records(self, draw: Draw, name: str) -> bytes:
        return draw.some(120)


PLAIN = Vocabulary()


def message(layout: Layout, draw: Draw, words: Vocabulary = PLAIN) -> Any:
    """A message or group of this layout. Fields that the version lacks have their default."""
    return layout.cls(**{field.name: value(field.type, field, draw, words) for field in layout.fields if field.present})


def value(kind: Type, field: Field, draw: Draw, words: Vocabulary) -> Any:
    name = field.name
    if kind.nullable and draw.chance(40):
        return None
    match kind.shape:
        case Shape.GROUP:
            assert kind.layout is not None
            return message(kind.layout, draw, words)
        case Shape.ARRAY:
            assert kind.item is not None
            if draw.chance(3) and not draw.was_long:
                draw.was_long = True  # once, or arrays in arrays are as long as their product
                return (value(kind.item, field, draw, words),) * LONG
            return tuple(value(kind.item, field, draw, words) for _ in range(draw.one_of(ITEMS)))
        case Shape.STRING:
            return words.text(draw, name)
        case Shape.BYTES:
            return words.blob(draw, name)
        case Shape.RECORDS:
            return words.records(draw, name)
        case Shape.FIXED if kind.letter == "?":
            return draw.chance(128)
        case Shape.FIXED if kind.letter == "16s":
            return words.uuid(draw, name)
        case Shape.FIXED if kind.letter == FLOAT:
            return draw.one_of(FLOATS)
        case Shape.FIXED:
            return words.number(draw, name, kind.letter)
