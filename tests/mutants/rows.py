"""The rows of `tables/*.txt` as mutants. A row is a paragraph:

    # epochs beyond the end outlive the opening
    breaks durability in log/files/opening.py
    -     log.epochs.cut_end(log.log_end_offset)
    +     pass
    fails unit/log/test_durable_cuts.py::test_epochs_of_a_log_whose_segments_are_gone_are_gone_with_them
    holds T34

`-` and `+` are whole lines of the source, as in a diff; `<` and `>` are parts of lines. `and in FILE` begins a second
change, of a guard that must go too. In place of changes, `breaks WHAT as planted` takes the change of the planted bug
of this name. A file begins with a paragraph that says what its rows are about.
"""

from pathlib import Path

from tests.mutants.mutant import Breaks, Mutant, table

TABLES = Path(__file__).parent / "tables"


def rows_of(path: Path) -> list[Mutant]:
    about, *rows = path.read_text().rstrip("\n").split("\n\n")
    assert not about.startswith("#"), f"{path} does not say what it is about"
    return [mutant_of(row) for row in rows]


def mutant_of(row: str) -> Mutant:
    title, breaks, *lines = row.split("\n")
    _, what, where, file = breaks.split(" ", 3)
    texts: dict[str, list[list[str]]] = {mark: [[]] for mark in "-+<>"}
    files, named = [file], {"fails": list[str](), "holds": list[str]()}
    for line in lines:
        word, _, rest = line.partition(" ")
        if word in named:
            named[word].append(rest)
        elif word == "and":
            files.append(rest.removeprefix("in "))
            for blocks in texts.values():
                blocks.append([])
        else:
            assert line[0] in texts, f"{title}: {line}"
            texts[line[0]][-1].append(line[1:].removeprefix(" "))
    name, tests, holds = title.removeprefix("# "), tuple(named["fails"]), tuple(named["holds"])
    if (where, file) == ("as", "planted"):
        return Mutant(f"planted: {name}", "", "", "", Breaks(what), tests, holds, bug=name)
    changes = [
        (file, text(old, part), text(new, other))
        for file, old, new, part, other in zip(files, *texts.values(), strict=True)
    ]
    (file, old, new), *more = changes
    return Mutant(name, file, old, new, Breaks(what), tests, holds, tuple(more))


def text(lines: list[str], parts: list[str]) -> str:
    assert not (lines and parts), "a change is of whole lines, or of parts of them"
    return "".join(f"{line}\n" for line in lines) or "\n".join(parts)


MUTANTS: dict[str, Mutant] = table(*(row for path in sorted(TABLES.rglob("*.txt")) for row in rows_of(path)))
