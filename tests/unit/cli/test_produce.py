"""Acknowledgements that a producer writes down."""

import json
import os
from pathlib import Path
from zlib import crc32

import pytest

from strandline.cli.records.produce import acknowledgements


class Stored:
    """A record as librdkafka reports it."""

    def __init__(self, offset: int | None, value: bytes | None = b"v") -> None:
        self.content = ("t", 3, offset, value)

    def topic(self) -> str:
        return self.content[0]

    def partition(self) -> int:
        return self.content[1]

    def offset(self) -> int | None:
        return self.content[2]

    def value(self) -> bytes | None:
        return self.content[3]


def test_lines_are_appended_whole_and_a_record_without_an_offset_has_none(tmp_path: Path) -> None:
    path = tmp_path / "acknowledged"
    path.write_text("before\n")
    with acknowledgements(str(path)) as noted:
        for offset, value in ((0, b"v"), (1, None), (-1001, b"v"), (None, b"v")):
            noted.note(Stored(offset, value))  # type: ignore[arg-type]
        assert path.read_text() == "before\n"
        noted.write()
        assert len(path.read_text().splitlines()) == 3
        noted.note(Stored(7))  # type: ignore[arg-type]
    before, *lines = path.read_text().splitlines()
    assert before == "before"
    rows = [json.loads(line) for line in lines]
    assert [(row["topic"], row["partition"], row["offset"], row["crc32"]) for row in rows] == [
        ("t", 3, 0, crc32(b"v")),
        ("t", 3, 1, None),
        ("t", 3, 7, crc32(b"v")),
    ]


def test_a_file_that_cannot_be_written_ends_the_command_before_anything_is_produced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"), acknowledgements(str(tmp_path)):
        pass
    assert "cannot be written" in capsys.readouterr().err


def test_what_came_is_written_also_if_the_command_fails(tmp_path: Path) -> None:
    path = tmp_path / "acknowledged"
    with pytest.raises(ValueError, match="x"), acknowledgements(str(path)) as noted:
        noted.note(Stored(5))  # type: ignore[arg-type]
        raise ValueError("x")
    assert os.path.getsize(path) > 0
