"""All planted bugs, by name. `rows/*.txt` has them, one a paragraph:

    # lost-tail-stays-eligible
    guard eligible-replicas
    without lost_tail
    trap T5, KAFKA-18635
    harm a replica that stopped uncleanly stays in the ELR and is elected without what it lost
    seeds 4..4

The lines are the fields of `Planted`. What becomes of the guard is one of `changes`: `never`, `always`, `skip`,
`without NAME`, `gives VALUE`; `<` and `>`, the words of before and those in their place; or `+`, other statements.
`and GUARD` begins the change of a second guard.
"""

from pathlib import Path

from tests.paragraphs import Lines, rows_of
from tests.planted.changes import Gives, How, Instead, Plain, Swap, Without
from tests.planted.planted import MODEL, SIM, Change, Planted, table

ROWS = Path(__file__).parent / "rows"
PLAIN = {how.value: how for how in Plain}


def planted_of(name: str, lines: Lines) -> Planted:
    fields = {word: rest for word, rest in lines if word in ("guard", "trap", "harm", "plan", "workload", "secured")}
    words = [word for word, _ in lines]
    second = words.index("and") if "and" in words else len(lines)
    also = Change(lines[second][1], how_of(lines[second:])) if second < len(lines) else None
    found = dict(lines)
    first, _, last = found.get("seeds", "").partition("..")
    return Planted(
        name=name,
        how=how_of(lines[:second]),
        **fields,
        found_by=MODEL if "found" in found else SIM,
        seeds=(int(first), int(last)) if first else None,
        also=also,
    )


def how_of(lines: Lines) -> How:
    for word, rest in lines:
        if word in PLAIN:
            return PLAIN[word]
        if word == "without":
            return Without(rest)
        if word == "gives":
            return Gives(rest)
        if word == "<":
            return Swap(rest, next((new for mark, new in lines if mark == ">"), ""))
    return Instead("\n".join(rest for word, rest in lines if word == "+"))


BY_FILE = {path.stem: [planted_of(*row) for row in rows_of(path)] for path in sorted(ROWS.rglob("*.txt"))}
PLANTED: dict[str, Planted] = table(*(row for rows in BY_FILE.values() for row in rows))
