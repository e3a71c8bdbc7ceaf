"""Rows for whoever reads: JSON for scripts, a table for a person, whole lines (never cut to a width) for a pipe.

A table that is wider than the terminal loses columns, the least important first, and says which. What is left is
wrapped where that is not enough: a name, a host or an id is never cut. Rich is imported when something is drawn.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from strandline.base.value import Value

if TYPE_CHECKING:  # an import of 30 ms, which only a terminal needs
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

Row = dict[str, Any]
BETWEEN = 3  # two columns: padding and a divider
EDGES = 2
PIPE_WIDTH = 1000  # a pipe has no width of its own
TEXT_WIDTH_MIN = 20  # of a column of sentences: they may be wrapped, but not to a word a line


class Column(Value, frozen=True):
    title: str
    justify: Literal["left", "right"] = "left"
    drops: int = 0  # on a narrow terminal the column with the highest number goes first; with 0 it stays
    is_text: bool = False  # sentences: wrapped before any column goes


class Fitted:
    """A table that fits itself to the width on which it is drawn."""

    def __init__(self, *columns: Column, caption: str = "") -> None:
        self.columns = columns
        self.caption = caption
        self.rows: list[tuple[tuple[str, ...], str]] = []

    def add_row(self, *cells: str, style: str = "") -> None:
        assert len(cells) <= len(self.columns)
        self.rows.append((cells + ("",) * (len(self.columns) - len(cells)), style))

    def fitting(self, width: int) -> list[int]:
        """The columns that are shown, by index."""
        shown = list(range(len(self.columns)))
        while self.needed(shown) > width and any(self.columns[i].drops for i in shown):
            shown.remove(max(shown, key=lambda i: self.columns[i].drops))
        return shown

    def needed(self, shown: list[int]) -> int:
        return sum(self.width_of(i) for i in shown) + BETWEEN * (len(shown) - 1) + EDGES

    def width_of(self, i: int) -> int:
        from rich.text import Text

        widest = max(Text.from_markup(text).cell_len for text in (self.columns[i].title, *(r[i] for r, _ in self.rows)))
        return min(widest, TEXT_WIDTH_MIN) if self.columns[i].is_text else widest

    def table(self, width: int) -> "Table":
        from rich import box
        from rich.table import Table

        shown = self.fitting(width)
        has_room = self.needed(shown) <= width
        hidden = [column.title for i, column in enumerate(self.columns) if i not in shown]
        lines = [self.caption, f"not shown on {width} columns: {', '.join(hidden)}" if hidden else ""]
        caption = "\n".join(line for line in lines if line) or None
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
        for i in shown:
            column = self.columns[i]
            table.add_column(
                column.title, justify=column.justify, overflow="fold", no_wrap=has_room and not column.is_text
            )
        for cells, style in self.rows:
            table.add_row(*(cells[i] for i in shown), style=style)
        return table

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RenderableType]":
        yield self.table(options.max_width)


def show_rows(
    rows: list[Row], json_output: bool, table_of: Callable[[list[Row]], Fitted], line_of: Callable[[Row], str]
) -> None:
    if json_output:
        print(json.dumps(rows))
    elif sys.stdout.isatty():
        draw(table_of(rows))
    else:
        print("\n".join(line_of(row) for row in rows))


def draw(table: Fitted) -> None:
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)
