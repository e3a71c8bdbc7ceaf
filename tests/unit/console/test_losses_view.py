"""The loss ledger as the console shows it, and which entries it acknowledges."""

from typing import Any

import pytest
from msgspec.structs import replace

from strandline.client.admin.loss_ledger import Ledger
from strandline.client.ask import config_of
from strandline.console.changes import acknowledgement
from strandline.console.changes.acknowledgement import Acknowledged, make, plan
from strandline.console.facts import Facts, Observed
from strandline.console.views.losses import ledger_rows, loss_rows
from strandline.metadata.acknowledgements import Acknowledged as Seen
from strandline.metadata.losses import AT_MOST, EXACTLY, NO_END
from strandline.wire.messages.own.describe_losses import Loss

EPOCHS = {"old_epoch": 3, "new_epoch": 4}
ELECTED = Loss(
    topic="t", where="metadata", start=10, end=NO_END, certainty=AT_MOST, replica=2, time_ms=1000, cause="…", **EPOCHS
)
CUT = Loss(
    topic="t", where="replica", node_id=1, replica=1, start=10, end=15, certainty=EXACTLY, time_ms=2000, **EPOCHS
)
ALONE = replace(CUT, topic="__consumer_offsets", start=1, end=2, new_epoch=-1, time_ms=3000)


def observed() -> Observed:
    return Observed(config_of("127.0.0.1:1"))


def test_entries_have_words_and_say_whether_their_end_is_known() -> None:
    rows = loss_rows(Facts(ledger=Ledger((ELECTED, CUT, ALONE), {}, acknowledged={CUT: Seen("me@here", 5)})))
    first, second, third = rows.values()
    assert first["words"] == "at most what was committed from offset 10 on"
    assert (first["is_open"], first["known"], first["who"]) == (True, "at most", "broker 2 was elected")
    assert (second["words"], second["is_open"]) == ("exactly 5 records, offsets 10 to 14", False)
    assert [row["acknowledged_by"] for row in rows.values()] == [None, "me@here", None]
    assert [row["is_of_one_replica"] for row in rows.values()] == [False, False, True]
    assert [bool(row["means"]) for row in rows.values()] == [False, False, True]
    assert third["means"][0].startswith("a lost record may be an offset")


def test_the_totals_name_what_could_not_be_asked() -> None:
    ledger = Ledger((ELECTED, CUT), {3: "does not run"}, 4, ((2, "/data"),), {CUT: Seen("me@here", 5)})
    row = ledger_rows(Facts(ledger=ledger))["ledger"]
    assert (row["entries"], row["acknowledged"], row["exactly_lost_records"]) == (2, 1, 5)
    assert row["gaps"] == [
        "Broker 3 was not asked: it does not run.",
        "The ledger in /data of broker 2 was not read: it is offline.",
        "4 older entries are not listed.",
    ]


def test_a_ledger_that_was_not_asked_yet_says_nothing() -> None:
    assert ledger_rows(Facts()) == {}
    assert loss_rows(Facts()) == {}


@pytest.fixture
def acknowledged(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the cluster is asked to acknowledge, of two entries of which one is acknowledged already."""
    done: list[Loss] = []
    ledger = Ledger((ELECTED, CUT), {}, acknowledged={CUT: Seen("me@here", 5)})
    monkeypatch.setattr(acknowledgement, "ask", lambda *_: ledger)
    monkeypatch.setattr(acknowledgement, "acknowledge", lambda _, losses: done.extend(losses))
    return done


def test_only_entries_that_were_shown_are_acknowledged(acknowledged: list[Loss]) -> None:
    planned = plan(observed(), Acknowledged())
    assert planned["count"] == 1
    assert "at most what was committed from offset 10 on; broker 2 was elected" in planned["lines"][0]
    assert make(observed(), Acknowledged(count=2))["is_done"] is False
    assert acknowledged == []
    assert make(observed(), Acknowledged(count=1))["is_done"] is True
    assert acknowledged == [ELECTED]
