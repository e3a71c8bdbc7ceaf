"""Tables on narrow terminals: names are never cut, and columns go by importance."""

from io import StringIO

import pytest
from rich.console import Console

from strandline.cli.admin import losses, reassignments, topics
from strandline.cli.show import Column, Fitted, draw
from strandline.client.admin.partitions import PartitionState, Place
from strandline.diagnosis.partitions import as_json

LONG = "payments.europe.settled-transactions-of-the-central-ledger-v2"
STATE = PartitionState(
    Place(LONG, 0), (1, 2, 3), (1, 2), 1, min_isr=2, elr=(3,), last_known_elr=(), last_known_leader=2
)
MOVE = {
    "topic": LONG,
    "partition": 11,
    "replicas": [1, 2, 3],
    "adding": [4],
    "removing": [1],
    "waits_for": "replica 4 must come into the ISR, and the ISR needs one member more",
    "behind": [{"replica": 4, "records": 1234567, "bytes": 123456789}],
}
LOSS = {
    "topic": LONG,
    "partition": 3,
    "time_ms": 1_700_000_000_000,
    "last_time_ms": 1_700_000_000_000,
    "start": 1234567,
    "end": 1234600,
    "certainty": 2,
    "where": "metadata",
    "replica": 2,
    "old_epoch": 6,
    "new_epoch": 7,
    "cause": "any replica leads: the topic allows the loss",
    "count": 1,
    "acknowledged": False,
}
TABLES = {
    "topics": topics.table_of([as_json(STATE)]),
    "reassignments": reassignments.table_of([MOVE]),
    "losses": losses.table_of([LOSS]),
}


def drawn(table: Fitted, width: int) -> list[str]:
    console = Console(width=width, file=StringIO())
    console.print(table)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("name", TABLES)
def test_a_table_fits_and_cuts_no_name(name: str, width: int) -> None:
    lines = drawn(TABLES[name], width)
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    start = lines[1].index("partition" if name == "losses" else "topic")
    assert LONG in "".join(line[start:].split(" ")[0] for line in lines[3:])


def test_the_least_important_column_goes_first_and_the_table_says_which() -> None:
    table = Fitted(Column("topic"), Column("isr", drops=1), Column("elr", drops=3), Column("led last", drops=2))
    table.add_row("orders", "1,2,3", "4,5", "1")
    shown = {width: drawn(table, width)[1].split("  ") for width in (60, 28, 18, 8)}
    titles = {width: [title.strip() for title in line if title.strip()] for width, line in shown.items()}
    assert titles[60] == ["topic", "isr", "elr", "led last"]
    assert titles[28] == ["topic", "isr", "led last"]
    assert titles[18] == ["topic", "isr"]
    assert titles[8] == ["topic"]
    assert "not shown" not in "".join(drawn(table, 60))
    assert "".join(drawn(table, 28)[-3:]).replace(" ", "") == "notshownon28columns:elr"


def test_sentences_are_wrapped_before_a_column_goes() -> None:
    table = Fitted(Column("topic"), Column("leader", drops=1), Column("why", is_text=True))
    table.add_row("orders", "2", "nobody is in sync or eligible, and who led last is not there")
    lines = drawn(table, 50)
    assert lines[1].split() == ["topic", "leader", "why"]
    assert (
        " ".join(" ".join(lines[3:]).split()) == "orders 2 nobody is in sync or eligible, and who led last is not there"
    )


def test_a_pipe_gets_all_columns(capsys: pytest.CaptureFixture[str]) -> None:
    draw(TABLES["losses"])
    title, _, row = capsys.readouterr().out.splitlines()[1:4]
    assert [part.strip() for part in title.split("  ") if part.strip()] == [c.title for c in TABLES["losses"].columns]
    assert LONG in row and "any replica leads: the topic allows the loss" in row
