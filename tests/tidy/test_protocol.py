"""The pages that map the protocol's sentences to tests, held against the tests that there are."""

import re
from pathlib import Path

from tests.mutants.page import PAGES

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
ROW = re.compile(r"^\| (?P<where>[^|]*) \| (?P<what>[^|]*) \| (?P<held>[^|]*) \|$")
NAME = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<test>test_\w+)`")
SCRIPT = re.compile(r"`(?P<file>scripts/[\w/]+\.txt)`")
NOT_YET = "not yet"
NUMBERED = {"T": 45, "L": 10}  # traps, and the last of each kind


def rows() -> list[tuple[str, str, str]]:
    """(where, what, held by) of every table, without their heads."""
    lines = [line for page in PAGES for line in page.read_text().splitlines()]
    found = [match.group("where", "what", "held") for match in map(ROW.match, lines) if match]
    return [row for row in found if row[1] != "what must hold"]


def defined_in(file: str) -> set[str]:
    path = TESTS / file
    return set(re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)) if path.exists() else set()


def test_every_test_that_the_pages_name_exists() -> None:
    text = "".join(page.read_text() for page in PAGES)
    named = [match.group("file", "test") for match in NAME.finditer(text)]
    assert len(named) > 100
    missing = [f"{file}::{test}" for file, test in named if test not in defined_in(file)]
    missing += [file for file in SCRIPT.findall(text) if not (TESTS / file).exists()]
    assert missing == []


def test_every_sentence_has_a_test_or_says_that_it_has_none() -> None:
    assert len(rows()) > 100
    unheld = [what for _, what, held in rows() if held != NOT_YET and not (NAME.search(held) or SCRIPT.search(held))]
    assert unheld == []


def numbered(letter: str, files: str) -> set[int]:
    """The numbers of the traps that tests bear in their names."""
    return {
        int(number)
        for path in TESTS.glob(files)
        for number in re.findall(rf"^def test_{letter}(\d+)_", path.read_text(), re.MULTILINE)
    }


def test_every_trap_has_its_row_and_its_tests_bear_its_number() -> None:
    for letter, last in NUMBERED.items():
        traps = {where: held for where, _, held in rows() if re.fullmatch(rf"{letter}\d+", where)}
        assert list(traps) == [f"{letter}{number}" for number in range(1, last + 1)]
        found = sorted(numbered(letter.lower(), "kip/**/test_*.py"))
        assert [number for number in found if traps[f"{letter}{number}"] == NOT_YET] == []


def test_every_trap_has_a_test_that_bears_its_number() -> None:
    for letter, last in NUMBERED.items():
        assert set(range(1, last + 1)) - numbered(letter.lower(), "**/test_*.py") == set()
