"""The marks of guards in the source, held against the planted bugs that take these guards away."""

import re

from tests.planted.guards import MARK, ROOT, marks
from tests.planted.tables import PLANTED

LIKE_A_MARK = re.compile(r"#\s*guards?\b\s*:", re.IGNORECASE)


def test_each_mark_stands_once_and_has_a_bug_and_each_bug_has_its_mark() -> None:
    guards = {change.guard for planted in PLANTED.values() for change in planted.changes}
    assert sorted(marks()) == sorted(guards), "without a row of tests/planted a mark says nothing"
    assert {name: places for name, places in marks().items() if len(places) != 1} == {}


def test_a_mark_is_written_in_one_way() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sorted(ROOT.rglob("strandline*/**/*.py"))
        for line in path.read_text().split("\n")
        if LIKE_A_MARK.search(line) and not MARK.search(line)
    ]
    assert wrong == []


def test_a_guard_of_one_bug_has_its_name() -> None:
    """So a reader of the source finds the row. Bugs that share a guard, and second guards, have a name for it."""
    named: dict[str, list[str]] = {}
    for planted in PLANTED.values():
        for change in planted.changes:
            named.setdefault(change.guard, []).append(planted.name)
    first = {planted.changes[0].guard for planted in PLANTED.values()}
    alone = {guard: bugs[0] for guard, bugs in named.items() if guard in first and len(bugs) == 1}
    assert {guard: bug for guard, bug in alone.items() if guard != bug} == {}
