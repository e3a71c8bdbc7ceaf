"""Every command in the documents is one that the command line accepts: it is parsed, and not run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from cyclopts import CycloptsError, MissingArgumentError

from strandline.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^ *```(?:sh|bash|console)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`strandline ([a-z-][^`]*)`")
CALL = re.compile(r"^\s*(?:\$ )?(?:[^#\n]*\| )?(?:\w+=\S+ )*strandline (?=[a-z-])(.*)", re.MULTILINE)


def commands(page: str) -> Iterator[str]:
    for block in BLOCK.findall(page):
        yield from CALL.findall(block.replace("\\\n", " "))


def why_not(command: str, *, may_lack: bool = False) -> str | None:
    """`may_lack`: a sentence that names a command leaves its arguments out."""
    try:
        app.parse_args(shlex.split(command, comments=True), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return None if may_lack and isinstance(error, MissingArgumentError) else str(error)
    return None


def test_every_command_in_the_documents_is_accepted() -> None:
    found = [(page.name, command) for page in PAGES for command in commands(page.read_text())]
    assert len(found) > 40
    assert [(page, command, why) for page, command in found if (why := why_not(command)) is not None] == []


def test_every_command_that_a_sentence_names_exists() -> None:
    found = [(page.name, command) for page in PAGES for command in INLINE.findall(BLOCK.sub("", page.read_text()))]
    assert len(found) > 40
    assert [(page, command) for page, command in found if why_not(command, may_lack=True) is not None] == []


def test_a_command_that_does_not_exist_is_found_in_any_kind_of_block() -> None:
    page = "```\n$ strandline topics make t\n```\n```sh\necho x | strandline produce \\\n  t --no-such  # why\n```\n"
    assert [why_not(command) is None for command in commands(page)] == [False, False]
