"""Rows under Kafka's titles: a line with a title before each value, or a table."""

from typing import Any

from strandline.cli.show import Column, Fitted, Row, show_rows


def show(rows: list[Row], columns: dict[str, str], json_output: bool) -> None:
    if not rows and not json_output:
        return
    show_rows(rows, json_output, lambda rows: table_of(rows, columns), lambda row: line_of(row, columns))


def line_of(row: Row, columns: dict[str, str]) -> str:
    return "\t".join(f"{title}: {text_of(row[key])}" for key, title in columns.items())


def table_of(rows: list[Row], columns: dict[str, str]) -> Fitted:
    numbers = [key for key in columns if all(isinstance(row[key], int) for row in rows)]
    table = Fitted(*(Column(title, "right" if key in numbers else "left") for key, title in columns.items()))
    for row in rows:
        table.add_row(*(text_of(row[key]) for key in columns))
    return table


def text_of(value: Any) -> str:
    """As Kafka's tools have it."""
    if value is None:
        return "None"
    return ",".join(value) if isinstance(value, list) else str(value)
