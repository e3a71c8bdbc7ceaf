"""Writes the Python source of an encoder.

Neighbouring fixed-width fields become one `pack`. Records are not copied: what was written so far is set aside as one
buffer, the records follow as they are, and writing goes on in a new buffer. A value that does not fit its schema (a
number out of range, None where null is not allowed) is a programmer's error and raises whatever Python raises for it.
"""

from struct import Struct

from strandline.wire.codec_plan import WIDTH, Field, Layout, Shape, Type
from strandline.wire.codec_source import Source
from strandline.wire.primitive import unsigned

ONE_BYTE_MAX = 127  # the largest number that is a varint of one byte


class EncoderWriter:
    """Generated locals: `out` (the bytearray being written, first the caller's), `chunks` (the buffers set aside)."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.letters: list[str] = []  # the run of fixed-width writes that is not written yet
        self.values: list[str] = []
        self.in_tag = False

    def write(self, letter: str, value: str) -> None:
        assert letter in WIDTH
        self.letters.append(letter)
        self.values.append(value)

    def flush(self) -> None:
        if not self.letters:
            return
        assert len(self.values) == len(self.letters) - self.letters.count("x"), "a value for each letter"
        if not self.values:
            self.source.add("out.append(0)" if self.letters == ["x"] else f"out += bytes({len(self.letters)})")
            self.letters = []
            return
        pack = self.source.constant("pack", Struct(">" + "".join(self.letters)).pack)
        self.source.add(f"out += {pack}({', '.join(self.values)})")
        self.letters, self.values = [], []

    def layout(self, layout: Layout, value: str) -> None:
        for field in layout.inline:
            self.value(field.type, f"{value}.{field.name}", field.name)
        if not layout.flexible:
            return
        if layout.tagged:
            self.flush()
            self.tagged(layout.tagged, value)
        else:
            self.letters.append("x")  # a zero byte: no tagged fields

    def tagged(self, fields: list[Field], value: str) -> None:
        assert fields and not self.letters, "what comes before the tagged fields is written"
        assert [field.tag for field in fields] == sorted({field.tag or 0 for field in fields}), "tags ascend (KIP-482)"
        source = self.source
        outer, tags, count = source.name("outer"), source.name("tags"), source.name("count")
        assert len(fields) <= ONE_BYTE_MAX
        self.in_tag, was_in_tag = True, self.in_tag
        source.add(f"{count} = 0")
        for field in fields:
            local = source.name(field.name)
            default = source.constant(f"default_{field.name}", field.default)
            source.add(f"{local} = {value}.{field.name}")
            source.open(f"if {local} is not {default} and {local} != {default}:")
            source.open(f"if not {count}:")
            source.add(f"{outer} = out")
            source.add(f"{tags} = bytearray()")
            source.close()
            source.add("out = bytearray()")
            self.value(field.type, local, field.name)
            self.flush()
            source.add(f"{count} += 1")
            source.add(f"{tags} += {source.constant('tag', unsigned(field.tag or 0))}")
            self.unsigned(tags, "len(out)")
            source.add(f"{tags} += out")
            source.close()
        source.open(f"if {count}:")
        source.add(f"out = {outer}")
        source.add(f"out.append({count})")
        source.add(f"out += {tags}")
        source.close()
        source.open("else:")
        source.add("out.append(0)")
        source.close()
        assert not self.letters, "`out` is another buffer now"
        self.in_tag = was_in_tag

    def value(self, type_: Type, value: str, name: str) -> None:
        source = self.source
        if type_.shape is Shape.FIXED:
            self.write(type_.letter, value)
            return
        if type_.shape is Shape.GROUP and not type_.nullable:
            assert type_.layout is not None
            local = source.name(name)
            source.add(f"{local} = {value}")
            self.layout(type_.layout, local)
            return
        local = source.name(name)
        self.flush()
        source.add(f"{local} = {value}")
        if not type_.nullable:
            self.present(type_, local, name)
            return
        source.open(f"if {local} is None:")
        self.null(type_)
        self.flush()
        source.close()
        source.open("else:")
        self.present(type_, local, name)
        self.flush()
        source.close()

    def null(self, type_: Type) -> None:
        assert type_.nullable
        if type_.shape is Shape.GROUP:
            self.write("b", str(type_.null))
        elif type_.flexible:
            self.letters.append("x")
        else:
            self.write("h" if type_.shape is Shape.STRING else "i", "-1")

    def present(self, type_: Type, local: str, name: str) -> None:
        source = self.source
        match type_.shape:
            case Shape.STRING:
                # An error message quotes what a client sent, and may be longer than Kafka's clients read.
                source.add(f"{local} = cut({local})" if name == "error_message" else f"{local} = {local}.encode()")
                self.length(type_, f"len({local})")
                source.add(f"out += {local}")
            case Shape.BYTES:
                self.length(type_, f"len({local})")
                source.add(f"out += {local}")
            case Shape.RECORDS:
                self.records(type_, local)
            case Shape.GROUP:
                assert type_.layout is not None
                self.write("b", "1")
                self.layout(type_.layout, local)
            case _:
                self.array(type_, local, name)

    def length(self, type_: Type, length: str) -> None:
        assert type_.shape not in (Shape.FIXED, Shape.GROUP), "only what varies has a length"
        if type_.flexible:
            self.flush()
            self.unsigned("out", f"{length} + 1")
        else:
            self.write("h" if type_.shape is Shape.STRING else "i", length)
            self.flush()

    def unsigned(self, out: str, value: str) -> None:
        """A varint that nearly always has one byte, for which nothing is called."""
        source = self.source
        local = source.name("unsigned")
        source.add(f"{local} = {value}")
        source.add(f"if {local} <= {ONE_BYTE_MAX}: {out}.append({local})")
        source.add(f"else: {out} += unsigned({local})")

    def records(self, type_: Type, local: str) -> None:
        assert not self.in_tag, "records in a tagged field would have to be copied"
        source = self.source
        size = source.name("size")
        source.add(f"{size} = sum(map(len, {local})) if {local}.__class__ is tuple else len({local})")
        self.length(type_, size)
        source.open(f"if {size}:")
        source.add("chunks.append(out)")
        source.open(f"if {local}.__class__ is tuple:")
        source.add(f"chunks += {local}")
        source.close()
        source.open("else:")
        source.add(f"chunks.append({local})")
        source.close()
        source.add("out = bytearray()")
        source.close()
        assert not self.letters, "nothing is left for a buffer that was set aside"

    def array(self, type_: Type, local: str, name: str) -> None:
        assert type_.item is not None
        source = self.source
        self.length(type_, f"len({local})")
        if type_.item.shape is Shape.FIXED and type_.item.letter != "16s":
            source.add(f"if {local}: out += pack(f'>{{len({local})}}{type_.item.letter}', *{local})")
            return
        item = source.name("item")
        source.open(f"for {item} in {local}:")
        lines = len(source.lines)
        self.value(type_.item, item, f"{name}_item")
        self.flush()
        if len(source.lines) == lines:
            source.add("pass")
        source.close()
