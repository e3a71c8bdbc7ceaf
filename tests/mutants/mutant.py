"""What a mutant is: one small wrong change of the source, and which tests must notice it.

A mutant differs from a planted bug (`tests.planted`) in who must find it: the tests that it names, one by one,
and not the simulator alone. A planted bug may be a mutant too: its row takes the bug's change over. `rows`
reads them all.
"""

from enum import Enum
from pathlib import Path

from tests.planted.guards import NotPlanted, without_marks
from tests.planted.hook import replacements
from tests.planted.tables import PLANTED

from strandline.base.value import Value

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "strandline"
TESTS = ROOT / "tests"


class Breaks(Enum):
    """What goes wrong for users. The simulator looks for the first two."""

    DURABILITY = "durability"  # what was acknowledged or committed may be gone
    AGREEMENT = "agreement"  # nodes may disagree for good, or act on what is not so
    ANSWERS = "answers"  # a request, a metric or a command says something wrong


class Mutant(Value, frozen=True):
    """`old` occurs exactly once in the file, and is replaced by `new`; or the change is a planted bug's."""

    name: str
    file: str  # below src/strandline
    old: str
    new: str
    breaks: Breaks
    tests: tuple[str, ...]  # below tests/, path::name; each must fail with the change, in one of its cases at least
    holds: tuple[str, ...] = ()  # parts of sentences of the pages in `page.py`, or their marks
    more: tuple[tuple[str, str, str], ...] = ()  # (file, old, new): a second guard, which must go too
    bug: str = ""  # of `tests.planted`, in place of the texts

    @property
    def changes(self) -> tuple[tuple[str, str, str], ...]:
        """Raises `Stale` if the guard of a planted bug is not marked, or is something else now."""
        if not self.bug:
            return ((self.file, self.old, self.new), *self.more)
        try:
            found = replacements(PLANTED[self.bug])
        except NotPlanted as why:
            raise Stale(str(why)) from None
        return tuple((module.removeprefix("strandline/"), old, new) for module, old, new in found)

    def is_about(self, text: str) -> bool:
        return text in self.name or any(text in file for file, _, _ in self.changes)


def table(*rows: Mutant) -> dict[str, Mutant]:
    named = {row.name: row for row in rows}
    assert len(named) == len(rows), "a name is used twice"
    return named


def read(file: str) -> str:
    return (SOURCE / file).read_text()


def mutated(source: str, file: str, old: str, new: str) -> str:
    """Rows do not write marks of guards down. Only the changes of planted bugs have one in them."""
    source = source if "# guard: " in old else without_marks(source)
    count = source.count(old)
    if count != 1:
        raise Stale(f"the text to replace occurs {count} times in {file}, not once: {old!r}")
    return source.replace(old, new)


class Stale(Exception):
    """The source has changed: the mutant must be written anew."""
