"""The rows of `tables/*.txt` as mutants. A row is a paragraph:

    # epochs beyond the end outlive the opening
    breaks durability in log/files/opening.py
    -     log.epochs.cut_end(log.log_end_offset)
    +     pass
    fails unit/log/test_durable_cuts.py::test_epochs_of_a_log_whose_segments_are_gone_are_gone_with_them
    holds T34

`-` and `+` are whole lines of the source, as in a diff; `<` and `>` are parts of lines. `and in FILE` begins a second
change, of a guard that must go too. In place of changes, `breaks WHAT as planted` takes the change of the planted bug
of this name.
"""

from pathlib import Path

from tests.mutants.mutant import Breaks, Mutant, table
from tests.paragraphs import Lines, rows_of

TABLES = Path(__file__).parent / "tables"
WHOLE, PART = ("-", "+"), ("<", ">")


def mutant_of(name: str, lines: Lines) -> Mutant:
    (_, breaks), *lines = lines
    what, _, where = breaks.partition(" ")
    tests, holds = (tuple(rest for word, rest in lines if word == asked) for asked in ("fails", "holds"))
    if where == "as planted":
        return Mutant(f"planted: {name}", "", "", "", Breaks(what), tests, holds, bug=name)
    changes: list[tuple[str, Lines]] = [(where.removeprefix("in "), [])]
    for word, rest in lines:
        if word == "and":
            changes.append((rest.removeprefix("in "), []))
        elif word not in ("fails", "holds"):
            assert word in (*WHOLE, *PART), f"{name}: {word} {rest}"
            changes[-1][1].append((word, rest))
    (file, old, new), *more = [(file, *(text(mark, change) for mark in (0, 1))) for file, change in changes]
    return Mutant(name, file, old, new, Breaks(what), tests, holds, tuple(more))


def text(side: int, change: Lines) -> str:
    """What was there (0), or what is there instead (1)."""
    lines, parts = ([rest for word, rest in change if word == marks[side]] for marks in (WHOLE, PART))
    return "".join(f"{line}\n" for line in lines) or "\n".join(parts)


MUTANTS: dict[str, Mutant] = table(
    *(mutant_of(*row) for path in sorted(TABLES.rglob("*.txt")) for row in rows_of(path))
)
