"""What brokers tell of losses, put together; and in words."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.cli.admin import losses as command
from strandline.cli.admin.losses import summary
from strandline.client.admin import loss_acknowledgement
from strandline.client.admin.loss_acknowledgement import acknowledgement, seen_losses
from strandline.client.admin.loss_ledger import Entry, as_json, entries, exactly_lost, merged, missing_copies
from strandline.client.brokers import Silence
from strandline.diagnosis.loss_words import line_of, range_words
from strandline.metadata.acknowledgements import id_of
from strandline.metadata.losses import AT_MOST, EXACTLY, NO_END, UNKNOWN
from strandline.wire.messages.own.describe_losses import DescribeLossesResponse, Loss

ELECTED = Loss(
    topic="t",
    where="metadata",
    start=10,
    certainty=AT_MOST,
    replica=2,
    old_epoch=3,
    new_epoch=4,
    time_ms=1000,
    cause="…",
)


def cut(node: int, start: int, end: int, time_ms: int = 2000, new_epoch: int = 4, old_epoch: int = 3) -> Loss:
    return Loss(
        topic="t",
        where="replica",
        node_id=node,
        start=start,
        end=end,
        certainty=EXACTLY,
        replica=node,
        old_epoch=old_epoch,
        new_epoch=new_epoch,
        time_ms=time_ms,
        cause="truncated",
    )


def answer_of(node: int, *losses: Loss, left_out: int = 0) -> DescribeLossesResponse:
    return DescribeLossesResponse(node_id=node, losses=losses, left_out=left_out)


def test_what_all_brokers_report_of_the_metadata_is_one_entry_and_entries_follow_each_other_in_time() -> None:
    ledger = merged(
        {1: answer_of(1, ELECTED, cut(1, 10, 12)), 2: answer_of(2, ELECTED), 3: answer_of(3, cut(3, 9, 12, 500))}
    )
    assert ledger.losses == (cut(3, 9, 12, 500), ELECTED, cut(1, 10, 12))
    assert ledger.is_complete


def test_two_replicas_that_lost_the_same_are_two_entries_of_records_that_count_once() -> None:
    ledger = merged({1: answer_of(1, cut(1, 10, 15)), 3: answer_of(3, cut(3, 12, 20))})
    assert len(ledger.losses) == 2
    assert exactly_lost(ledger.losses) == 10
    assert exactly_lost((cut(1, 0, 5), cut(1, 0, 5, new_epoch=9, old_epoch=4))) == 10, "lost, written, and lost"
    assert exactly_lost((cut(1, 0, 5), cut(3, 7, 9), cut(2, 1, 2))) == 7
    assert exactly_lost((ELECTED,)) == 0, "of which it is not known exactly"


def test_a_replica_that_returns_after_further_elections_lost_nothing_more() -> None:
    assert exactly_lost((cut(1, 0, 5), cut(3, 0, 5, new_epoch=9))) == 5
    assert exactly_lost((cut(1, 0, 5), cut(3, 0, 7, new_epoch=9, old_epoch=2))) == 7
    assert exactly_lost((cut(1, 0, 5), cut(2, 0, 5, old_epoch=4, new_epoch=6), cut(3, 0, 5, new_epoch=9))) == 10


@pytest.mark.parametrize("certainty", [AT_MOST, UNKNOWN])
def test_what_a_replica_found_missing_is_lost_if_it_then_leads_with_what_was_left(certainty: int) -> None:
    """A topic with one replica, or with one that was the last in sync."""
    found = cut(2, 40, 50, time_ms=100, new_epoch=-1, old_epoch=2)
    leads = replace(cut(2, 40, 50), end=NO_END, certainty=certainty)
    assert (exactly_lost((found, leads)), missing_copies((found, leads))) == (10, 0)
    others = (cut(1, 40, 50), cut(3, 40, 45, new_epoch=5))
    assert exactly_lost((found, leads, *others)) == 10, "what others cut to be like it counts once"
    again = (replace(found, end=43, time_ms=3000), replace(leads, old_epoch=7, new_epoch=8, time_ms=3000))
    assert exactly_lost((found, leads, *others, *again)) == 13, "its log ended there twice"
    copied = replace(leads, start=50)
    assert (exactly_lost((found, copied)), missing_copies((found, copied))) == (0, 10)


def test_what_one_replica_found_missing_is_no_loss_where_its_leader_has_it() -> None:
    """A disk that lost its tail: the replica copies it again."""
    found = cut(2, 40, 50, new_epoch=-1)
    assert (exactly_lost((found, cut(1, 0, 3))), missing_copies((found, cut(1, 0, 3)))) == (3, 10)
    assert summary([as_json(Entry((found,)))], merged({1: answer_of(1)}), 0, 10) == (
        "1 entry: exactly 0 records lost; 10 records that a single replica missed, copied again if its leader had them"
    )


def test_a_ledger_that_not_all_brokers_told_is_incomplete() -> None:
    refused = DescribeLossesResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    ledger = merged({1: answer_of(1), 2: Silence("does not run"), 3: refused})
    assert ledger.silent == {2: "does not run", 3: "refuses: KAFKA_STORAGE_ERROR"}
    assert not ledger.is_complete
    assert not merged({1: answer_of(1, left_out=2)}).is_complete
    unread = merged({1: answer_of(1), 2: replace(answer_of(2), unread=("/d1",))})
    assert (unread.unread, unread.is_complete) == (((2, "/d1"),), False)
    assert summary([], unread, 0, 0) == "nothing that the others know of was lost"


@pytest.mark.parametrize(
    ("start", "end", "certainty", "words"),
    [
        (5, 8, EXACTLY, "exactly 3 records, offsets 5 to 7"),
        (5, 6, EXACTLY, "exactly 1 record, offset 5"),
        (5, 5, EXACTLY, "exactly 0 records"),
        (5, 8, AT_MOST, "at most 3 records, offsets 5 to 7"),
        (5, NO_END, AT_MOST, "at most what was committed from offset 5 on"),
        (0, NO_END, UNKNOWN, "unknown: nobody can say which records"),
        (7, NO_END, UNKNOWN, "unknown: perhaps some from offset 7 on"),
    ],
)
def test_a_range_in_words(start: int, end: int, certainty: int, words: str) -> None:
    assert range_words(start, end, certainty) == words


def test_an_entry_is_a_line_with_the_replica_its_loss_and_the_cause() -> None:
    assert line_of(as_json(Entry((ELECTED,)))) == (
        "1970-01-01T00:00:01Z t-0: at most what was committed from offset 10 on; broker 2 was elected, epoch 3 to 4; …"
    )
    assert line_of(as_json(Entry((cut(3, 5, 8),)))) == (
        "1970-01-01T00:00:02Z t-0: exactly 3 records, offsets 5 to 7; broker 3's log, epoch 3 to 4; truncated"
    )


def test_the_summary_says_nothing_was_lost_only_if_all_were_asked() -> None:
    complete, incomplete = merged({1: answer_of(1)}), merged({1: answer_of(1), 2: Silence("…")})
    assert summary([], complete, 0, 0) == "nothing was lost"
    assert summary([], incomplete, 0, 0) == "nothing that the others know of was lost"
    rows = [as_json(Entry((ELECTED,))), as_json(Entry((cut(1, 2, 5),)))]
    assert summary(rows, complete, 3, 0) == "2 entries: exactly 3 records lost; of 1 it is not known exactly how much"
    assert summary(rows[:1], complete, 0, 0) == "1 entry: it is not known exactly how much was lost"
    assert summary(rows[1:], complete, 3, 0) == "1 entry: exactly 3 records lost"


def beginning(node: int, time_ms: int, new_epoch: int = 4, start: int = 10) -> Loss:
    """As a leader notes it that was elected uncleanly."""
    return replace(cut(node, start, NO_END, time_ms, new_epoch, new_epoch - 1), certainty=AT_MOST, cause="elected")


def test_what_an_election_may_lose_and_its_leader_reports_too_is_one_entry() -> None:
    (entry,) = entries([beginning(2, 1005), ELECTED])
    row = as_json(entry)
    assert (row["where"], row["time_ms"], row["count"], row["last_time_ms"]) == ("metadata", 1000, 1, 1005)
    for other in (beginning(1, 1005), beginning(2, 1005, 5), beginning(2, 1005, start=9), cut(2, 10, 12)):
        assert len(entries([other, ELECTED])) == 2


def test_what_may_have_been_lost_again_and_again_is_one_entry_with_its_number_and_last_time() -> None:
    again = [beginning(2, 1000 * epoch, epoch) for epoch in (6, 7, 9)]
    (entry,) = entries(reversed(again))
    row = as_json(entry)
    assert (row["time_ms"], row["old_epoch"], row["new_epoch"]) == (6000, 5, 9)
    assert (row["count"], row["last_time_ms"]) == (3, 9000)
    assert line_of(row).endswith("; elected (3 times, last at 1970-01-01T00:00:09Z)")
    elections = [replace(ELECTED, new_epoch=epoch, time_ms=1000 * epoch, cause="elected") for epoch in (6, 7)]
    (entry,) = entries([*again[:2], *elections])
    assert entry.count == 2
    assert len(entries([*again, replace(again[0], replica=1), replace(again[0], topic="u")])) == 3


def test_exact_losses_are_never_one_entry() -> None:
    """Records were lost at the same offsets twice."""
    assert len(entries([cut(1, 5, 8), cut(1, 5, 8, 3000, 6, 5), cut(1, 5, 8, 4000, -1), cut(1, 5, 8, 5000, -1)])) == 4


def seen(loss: Loss, time_ms: int = 9000) -> Loss:
    return replace(loss, acknowledged_by="me@here", acknowledged_ms=time_ms)


def test_an_entry_is_acknowledged_when_all_that_it_stands_for_is() -> None:
    """Brokers whose metadata lag tell the same entry without."""
    again = [beginning(2, 1000 * epoch, epoch) for epoch in (6, 7)]
    ledger = merged({1: answer_of(1, seen(again[0]), again[1]), 2: answer_of(2, again[0])})
    (entry,) = entries(ledger.losses)
    assert len(ledger.losses) == 2
    assert acknowledgement(entry, ledger.acknowledged) is None
    ledger = merged({1: answer_of(1, *map(seen, again)), 2: answer_of(2, seen(again[0], 9500))})
    (entry,) = entries(ledger.losses)
    row = as_json(entry, acknowledgement(entry, ledger.acknowledged))
    assert (row["acknowledged"], row["acknowledged_by"]) == (True, "me@here")
    assert line_of(row).endswith("[acknowledged by me@here at 1970-01-01T00:00:09Z]")
    assert not as_json(entry)["acknowledged"]


def test_what_is_acknowledged_goes_to_the_controller_in_bounded_requests() -> None:
    many = [replace(ELECTED, partition=number % 7, time_ms=number) for number in range(2500)]
    requests = list(seen_losses(many))
    assert [sum(len(row.ids) for row in request.partitions) for request in requests] == [1000, 1000, 500]
    assert len({(row.partition, one) for request in requests for row in request.partitions for one in row.ids}) == 2500


@pytest.mark.parametrize(
    "field",
    ["topic", "where", "node_id", "start", "end", "certainty", "replica", "old_epoch", "new_epoch", "time_ms", "cause"],
)
def test_an_entry_that_differs_in_anything_is_another_one(field: str) -> None:
    value = getattr(ELECTED, field)
    other: Any = value + "x" if isinstance(value, str) else value + 1
    assert id_of(replace(ELECTED, **{field: other})) != id_of(ELECTED)


def show_of(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *found: Loss, **flags: bool) -> Any:
    """Exit status, output, and what was asked of the controller."""
    asked: list[Any] = []
    monkeypatch.setattr(command, "brokers_of", lambda _: {1: None})
    monkeypatch.setattr(command, "may_describe_cluster", lambda _: True)
    monkeypatch.setattr(command, "ask_ledger", lambda *_: merged({1: answer_of(1, *found)}))
    monkeypatch.setattr(loss_acknowledgement, "ask_any", lambda _, request, *__: asked.append(request))
    status = command.losses(**flags)
    return status, capsys.readouterr().out.splitlines(), asked


def test_acknowledged_entries_are_hidden_and_then_the_status_says_that_all_is_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, lines, _ = show_of(capsys, monkeypatch, seen(ELECTED), cut(1, 2, 5))
    assert (status, len(lines)) == (2, 2)
    assert (
        lines[-1] == "1 entry: exactly 3 records lost; not shown (--all): 1 acknowledged entry (1 of 1 brokers asked)"
    )
    status, lines, _ = show_of(capsys, monkeypatch, seen(ELECTED), seen(cut(1, 2, 5)))
    assert (status, lines) == (
        0,
        ["nothing else was lost; not shown (--all): 2 acknowledged entries (1 of 1 brokers asked)"],
    )
    status, lines, _ = show_of(capsys, monkeypatch, seen(ELECTED), show_all=True)
    assert (status, len(lines), "acknowledged by me@here" in lines[0]) == (0, 2, True)
    status, lines, _ = show_of(capsys, monkeypatch, seen(ELECTED), cut(1, 2, 5), json_output=True)
    assert [row["acknowledged"] for row in json.loads(lines[0])["losses"]] == [True, False]


def test_only_what_is_shown_and_not_seen_yet_is_acknowledged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, lines, (request,) = show_of(capsys, monkeypatch, seen(ELECTED), cut(1, 2, 5), acknowledge=True)
    assert [row.ids for row in request.partitions] == [(id_of(cut(1, 2, 5)),)]
    assert "@" in request.asked_by
    assert (status, lines[-1]) == (0, "1 entry is acknowledged now")
    status, _, asked = show_of(capsys, monkeypatch, seen(ELECTED), acknowledge=True)
    assert (status, asked) == (0, [])
