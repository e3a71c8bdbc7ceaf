"""Tables as text. A row is a paragraph: `# ` and its title, then lines of a word and what belongs to it.

A file begins with a paragraph about its rows. Other paragraphs without a title are notes.
"""

from collections.abc import Iterator
from pathlib import Path

Lines = list[tuple[str, str]]  # a word, or a mark such as `-`, and the rest of the line after one space


def rows_of(path: Path) -> Iterator[tuple[str, Lines]]:
    about, *paragraphs = path.read_text().rstrip("\n").split("\n\n")
    assert not about.startswith("#"), f"{path} does not say what it is about"
    for paragraph in paragraphs:
        title, *lines = paragraph.split("\n")
        if title.startswith("# "):
            yield title[2:], [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]
