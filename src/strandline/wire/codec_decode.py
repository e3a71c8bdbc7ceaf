"""Writes the Python source of a decoder.

Neighbouring fixed-width fields, together with the length prefix of the variable field that follows them, are read by
one `unpack_from`; a byte that stands alone is indexed. A compact length is read as one byte, and again as a varint only
if that byte says so. Reading beyond the end shows as struct.error or IndexError, which the codec turns into
`Malformed`; slices do not fail by themselves, so each is checked.
"""

from struct import Struct

from strandline.wire.codec_plan import WIDTH, Field, Layout, Shape, Type
from strandline.wire.codec_source import Source


class DecoderWriter:
    """Generated locals: `buffer`, `position`, `size` (of the buffer)."""

    def __init__(self, source: Source, *, counts: bool = False) -> None:
        """`counts`: the local `items_left` bounds how many items and tagged fields there are in all."""
        self.source = source
        self.counts = counts
        self.letters: list[str] = []  # the run of fixed-width reads that is not written yet
        self.targets: list[str] = []

    def read(self, letter: str, stem: str) -> str:
        """Append a fixed-width read to the run; the local holds its value after `flush`."""
        assert letter in WIDTH
        target = self.source.name(stem)
        self.letters.append(letter)
        self.targets.append(target)
        return target

    def flush(self) -> None:
        if not self.letters:
            return
        assert len(self.letters) == len(self.targets)
        if self.letters == ["B"]:
            self.byte(self.targets[0])
            self.letters, self.targets = [], []
            return
        form = Struct(">" + "".join(self.letters))
        unpack = self.source.constant("unpack", form.unpack_from)
        self.source.add(f"{', '.join(self.targets)}, = {unpack}(buffer, position)")
        self.source.add(f"position += {sum(WIDTH[letter] for letter in self.letters)}")
        self.letters, self.targets = [], []

    def byte(self, target: str) -> None:
        """One byte costs less without `struct`. Beyond the end it is an IndexError, which the codec knows too."""
        self.source.add(f"{target} = buffer[position]")
        self.source.add("position += 1")

    def unsigned(self, target: str) -> None:
        """A varint that nearly always has one byte."""
        self.byte(target)
        self.source.add(f"if {target} > 127: {target}, position = read_unsigned(buffer, position - 1)")

    def layout(self, layout: Layout) -> str:
        """Read a group; return an expression that constructs it."""
        values = {field.name: self.value(field.type, field.name) for field in layout.inline}
        if layout.flexible:
            tags = self.read("B", "tags")
            self.flush()
            values |= self.tagged(layout.tagged, tags)
        self.flush()
        assert not self.letters, "everything is read before the group is made"
        assert set(values) <= {field.name for field in layout.fields}
        arguments = [
            values.get(field.name) or self.source.constant(f"default_{field.name}", field.default)
            for field in layout.fields
        ]
        while layout.fields and arguments and layout.fields[len(arguments) - 1].name not in values:
            arguments.pop()  # the class itself knows its defaults
        return f"{self.source.constant(layout.cls.__name__, layout.cls)}({', '.join(arguments)})"

    def tagged(self, fields: list[Field], count: str) -> dict[str, str]:
        assert not self.letters, "the count of tagged fields is read"
        source = self.source
        values = {field.name: source.name(field.name) for field in fields}
        for field in fields:
            source.add(f"{values[field.name]} = {source.constant(f'default_{field.name}', field.default)}")
        source.open(f"if {count}:")
        source.open(f"if {count} > 127:")
        source.add(f"{count}, position = read_unsigned(buffer, position - 1)")
        source.close()
        tag, end = source.name("tag"), source.name("end")
        self.count(count)
        source.open(f"for _ in range({count}):")
        self.unsigned(tag)
        self.unsigned(end)
        source.add(f"{end} += position")
        source.add(f"if {end} > size: raise Malformed('tagged field beyond the end')")
        branch = "if"
        for field in fields:
            source.open(f"{branch} {tag} == {field.tag}:")
            value = self.value(field.type, field.name)
            self.flush()
            source.add(f"{values[field.name]} = {value}")
            source.add(f"if position != {end}: raise Malformed('size of tagged field {field.name}')")
            source.close()
            branch = "elif"
        if fields:
            source.open("else:")
            source.add(f"position = {end}")
            source.close()
        else:
            source.add(f"position = {end}")
        source.close()
        source.close()
        return values

    def value(self, type_: Type, name: str) -> str:
        """Read a value; return an expression for it, valid after the next `flush`."""
        match type_.shape:
            case Shape.FIXED:
                return self.read(type_.letter, name)
            case Shape.STRING | Shape.BYTES | Shape.RECORDS:
                return self.sized(type_, name)
            case Shape.GROUP:
                return self.group(type_, name)
            case Shape.ARRAY:
                return self.array(type_, name)

    def length(self, type_: Type, name: str) -> str:
        """Read a length or a count: -1 for null, checked for more than that only by what follows."""
        source = self.source
        if not type_.flexible:
            length = self.read("h" if type_.shape is Shape.STRING else "i", "length")
            self.flush()
            return length
        length = self.read("B", "length")
        self.flush()
        source.open(f"if {length} > 127:")
        source.add(f"{length}, position = read_unsigned(buffer, position - 1)")
        source.close()
        source.add(f"{length} -= 1")
        return length

    def absent(self, type_: Type, name: str, length: str, target: str) -> None:
        """What a negative length means. Leaves an `else` branch open."""
        assert not self.letters, "the length is read"
        source = self.source
        source.open(f"if {length} < 0:")
        if type_.nullable:
            source.add(f"if {length} != -1: raise Malformed('negative length of {name}')")
            source.add(f"{target} = None")
        else:
            source.add(f"raise Malformed('{name} is null or of negative length')")
        source.close()
        source.open("else:")

    def sized(self, type_: Type, name: str) -> str:
        source = self.source
        length = self.length(type_, name)
        target, end = source.name(name), source.name("end")
        self.absent(type_, name, length, target)
        source.add(f"{end} = position + {length}")
        source.add(f"if {end} > size: raise Malformed('{name} beyond the end')")
        convert = {
            Shape.STRING: f"str(buffer[position:{end}], 'utf-8')",
            Shape.BYTES: f"bytes(buffer[position:{end}])",
            Shape.RECORDS: f"buffer[position:{end}]",
        }
        assert type_.shape in convert
        source.add(f"{target} = {convert[type_.shape]}")
        source.add(f"position = {end}")
        source.close()
        return target

    def group(self, type_: Type, name: str) -> str:
        assert type_.layout is not None
        source = self.source
        target = source.name(name)
        if not type_.nullable:
            source.add(f"{target} = {self.layout(type_.layout)}")
            return target
        marker = self.read("b", "marker")
        self.flush()
        source.open(f"if {marker} <= {type_.null}:")
        source.add(f"{target} = None")
        source.close()
        source.open("else:")
        source.add(f"{target} = {self.layout(type_.layout)}")
        source.close()
        return target

    def count(self, items: str) -> None:
        if self.counts:
            self.source.add(f"items_left -= {items}")
            self.source.add("if items_left < 0: raise Malformed(TOO_MANY)")

    def array(self, type_: Type, name: str) -> str:
        assert type_.item is not None
        assert type_.item.size_min() > 0, "the bytes that are left bound the count"
        source = self.source
        count = self.length(type_, name)
        target = source.name(name)
        self.absent(type_, name, count, target)
        source.add(
            f"if {count} * {type_.item.size_min()} > size - position: raise Malformed('{name}: more items than bytes')"
        )
        self.count(count)
        if type_.item.shape is Shape.FIXED and type_.item.letter != "16s":
            source.add(f"{target} = unpack_from(f'>{{{count}}}{type_.item.letter}', buffer, position)")
            source.add(f"position += {count} * {WIDTH[type_.item.letter]}")
        else:
            items, append = source.name("items"), source.name("append")
            source.add(f"{items} = []")
            source.add(f"{append} = {items}.append")
            source.open(f"for _ in range({count}):")
            item = self.value(type_.item, f"{name}_item")
            self.flush()
            source.add(f"{append}({item})")
            source.close()
            source.add(f"{target} = tuple({items})")
        source.close()
        return target
