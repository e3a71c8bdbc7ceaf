"""Rows for whoever reads: JSON for scripts, a table for a person, whole lines (never cut to a width) for a pipe."""

import json
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

Row = dict[str, Any]


def show_rows(
    rows: list[Row], json_output: bool, table_of: Callable[[list[Row]], Table], line_of: Callable[[Row], str]
) -> None:
    if json_output:
        print(json.dumps(rows))
    elif sys.stdout.isatty():
        Console().print(table_of(rows))
    else:
        print("\n".join(line_of(row) for row in rows))
