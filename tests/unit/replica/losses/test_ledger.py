"""The loss ledger of a broker: its file, its bounds, and what it does with lines that make no sense."""

import json
import random
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rows import each
from tests.unit.replica.disk import DictDisk

from strandline.base.ids import TopicIdPartition, Uuid
from strandline.base.ports import DiskError
from strandline.metadata.losses import AT_MOST, EXACTLY, NO_END, UNKNOWN
from strandline.metadata.records import LossEvent
from strandline.replica.hosting import ledger as module
from strandline.replica.hosting.ledger import ASIDE, FILE, Ledger, Lost
from strandline.sim.world.disk import SimDisk

AT = TopicIdPartition(Uuid(b"id of topic t  ."), 3)
ROOT = "/data"


def lost(start: int = 5, end: int = 9, certainty: int = EXACTLY, at: TopicIdPartition = AT, **fields: Any) -> Lost:
    event = LossEvent(start=start, end=end, certainty=certainty, replica=1, old_epoch=3, new_epoch=4, time_ms=7)
    return Lost(at, "t", replace(event, **fields))


@pytest.fixture
def disk() -> DictDisk:
    made = DictDisk()
    made.make_directory(ROOT)
    return made


def reopened(disk: Any) -> tuple[Ledger, list[str]]:
    ledger = Ledger(disk)
    return ledger, ledger.load(ROOT)


def test_what_was_written_is_read_again(disk: DictDisk) -> None:
    written = [lost(cause='why "quoted"\nand ü'), lost(9, NO_END, AT_MOST, time_ms=8), lost(0, NO_END, UNKNOWN)]
    assert Ledger(disk).write(ROOT, written) == written
    ledger, reports = reopened(disk)
    assert (list(ledger.all()), reports) == (written, [])
    assert (ledger.events, ledger.records) == (3, 4)


def test_the_file_is_lines_of_json_a_head_first(disk: DictDisk) -> None:
    Ledger(disk).write(ROOT, [lost(cause="c")])
    content = disk.read_file(f"{ROOT}/{FILE}")
    assert content is not None
    assert content.decode().splitlines() == [
        '{"version":0,"earlierEvents":0,"earlierRecords":0}',
        '{"topic":"t","topicId":"aWQgb2YgdG9waWMgdCAgLg","partition":3,"start":5,"end":9,"certainty":2,"replica":1,'
        '"oldEpoch":3,"newEpoch":4,"timeMs":7,"cause":"c"}',
    ]


def test_without_a_file_nothing_was_lost(disk: DictDisk) -> None:
    ledger, reports = reopened(disk)
    assert (list(ledger.all()), reports, ledger.events, ledger.records) == ([], [], 0, 0)
    assert not disk.exists(f"{ROOT}/{FILE}")


@each("seed", range(20))
def test_what_was_written_outlives_the_power(seed: int) -> None:
    disk = SimDisk((ROOT,))
    Ledger(disk).write(ROOT, [lost()])
    disk.crash(random.Random(seed))
    assert list(reopened(disk)[0].all()) == [lost()]


def test_an_event_that_the_disk_does_not_take_is_none() -> None:
    disk = SimDisk((ROOT,))
    ledger = Ledger(disk)
    ledger.write(ROOT, [lost()])
    disk.fail(ROOT)
    with pytest.raises(DiskError):
        ledger.write(ROOT, [lost(time_ms=9, start=6)])
    assert list(ledger.all()) == [lost()]


def test_many_events_are_one_write(disk: DictDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    saves: list[str] = []
    save = disk.save

    def counted(path: str, content: bytes) -> None:
        saves.append(path)
        save(path, content)

    monkeypatch.setattr(disk, "save", counted)
    Ledger(disk).write(ROOT, [lost(at=TopicIdPartition(AT.topic_id, n)) for n in range(50)])
    assert saves == [f"{ROOT}/{FILE}"]


def test_what_a_start_finds_again_is_not_noted_again(disk: DictDisk) -> None:
    ledger = Ledger(disk)
    assert ledger.write(ROOT, [lost()]) == [lost()]
    assert ledger.write(ROOT, [lost(time_ms=1_000)]) == []
    ledger, _ = reopened(disk)
    assert ledger.write(ROOT, [lost(time_ms=2_000)]) == []
    other = lost(new_epoch=5)
    assert ledger.write(ROOT, [other, other]) == [other], "another epoch, another loss"
    assert ledger.write(ROOT, [lost()]) == [lost()], "only the latest are compared"
    assert ledger.write(ROOT, [lost(at=TopicIdPartition(AT.topic_id, 4))]) != [], "of another partition"


def test_events_that_come_together_are_not_noted_again_either(disk: DictDisk) -> None:
    """A cut through a batch is two: they are noted before all cuts of an answer, and by each cut."""
    ledger, both = Ledger(disk), [lost(4, 5, AT_MOST), lost(5, 9)]
    assert ledger.write(ROOT, both) == both
    assert ledger.write(ROOT, both) == []
    assert reopened(disk)[0].write(ROOT, both) == []
    assert ledger.records == 4


def test_the_latest_10000_are_kept_and_of_the_others_their_sum(disk: DictDisk) -> None:
    assert module.LINES_MAX == 10_000
    ledger = Ledger(disk)
    every = [lost(start, start + 2) for start in range(10_000)]
    ledger.write(ROOT, every)
    assert len(list(ledger.all())) == 10_000
    ledger.write(ROOT, [lost(20_000, 20_003), lost(20_000, NO_END, AT_MOST)])
    for one in (ledger, reopened(disk)[0]):
        kept = list(one.all())
        assert len(kept) == 10_000
        assert (kept[0], kept[-1].event.end) == (lost(2, 4), NO_END)
        assert (one.events, one.records) == (10_002, 20_003)


def test_a_file_that_has_more_is_read_to_the_bound(disk: DictDisk) -> None:
    Ledger(disk).write(ROOT, [lost(start, start + 2) for start in range(10_000)])
    content = disk.read_file(f"{ROOT}/{FILE}")
    assert content is not None
    head, *lines = content.splitlines()
    disk.write_file(f"{ROOT}/{FILE}", b"\n".join([head, *lines, *lines[:7]]) + b"\n")
    ledger, reports = reopened(disk)
    ledger.check()
    assert (len(list(ledger.all())), ledger.events, ledger.records, reports) == (10_000, 10_007, 20_014, [])


def good_lines(disk: DictDisk) -> list[bytes]:
    Ledger(disk).write(ROOT, [lost(), lost(start=6)])
    content = disk.read_file(f"{ROOT}/{FILE}")
    assert content is not None
    return content.splitlines()


@pytest.mark.parametrize("nonsense", [b"nonsense", b"{}", b"\xff\x00", b'{"topic":"t"}', b"[1,2]", b"0"])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_an_invalid_line_is_set_aside_and_reported_and_the_others_stay(
    disk: DictDisk, nonsense: bytes, place: int
) -> None:
    lines = good_lines(disk)
    lines.insert(place, nonsense)
    disk.write_file(f"{ROOT}/{FILE}", b"\n".join(lines))
    ledger, (report,) = reopened(disk)
    assert list(ledger.all()) == [lost(), lost(start=6)]
    aside = disk.read_file(f"{ROOT}/{ASIDE}")
    assert aside is not None
    assert nonsense + b"\n" in aside
    assert f"{ROOT}/{ASIDE}" in report
    assert reopened(disk)[1] == [], "it is told of once"
    assert list(reopened(disk)[0].all()) == [lost(), lost(start=6)]


def test_what_was_kept_aside_before_stays(disk: DictDisk) -> None:
    for nonsense in (b"one", b"two"):
        disk.write_file(f"{ROOT}/{FILE}", b"\n".join([*good_lines(disk)[:1], nonsense]))
        reopened(disk)
    assert disk.read_file(f"{ROOT}/{ASIDE}") == b"one\ntwo\n"


def test_a_ledger_whose_head_is_lost_keeps_its_events(disk: DictDisk) -> None:
    disk.write_file(f"{ROOT}/{FILE}", b"\n".join(good_lines(disk)[1:]))
    ledger, reports = reopened(disk)
    assert (len(list(ledger.all())), reports) == (2, [])


WRONG = [
    {"partition": -1},
    {"start": -1},
    {"end": 4},
    {"end": -2},
    {"certainty": 3},
    {"certainty": -1},
    {"certainty": EXACTLY, "end": NO_END},
    {"topicId": "short"},
    {"topic": 5},
    {"cause": None},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_an_event_that_cannot_be_is_nonsense(disk: DictDisk, wrong: dict[str, Any]) -> None:
    lines = good_lines(disk)
    lines[1] = json.dumps(json.loads(lines[1]) | wrong).encode()
    disk.write_file(f"{ROOT}/{FILE}", b"\n".join(lines))
    ledger, (report,) = reopened(disk)
    assert list(ledger.all()) == [lost(start=6)]
    assert "1 line that makes no sense" in report


def test_fields_that_we_do_not_know_stay_in_the_file(disk: DictDisk) -> None:
    lines = good_lines(disk)
    lines[1] = lines[1][:-1] + b',"later":"field"}'
    disk.write_file(f"{ROOT}/{FILE}", b"\n".join(lines))
    ledger, _ = reopened(disk)
    ledger.write(ROOT, [lost(start=7)])
    content = disk.read_file(f"{ROOT}/{FILE}")
    assert content is not None
    assert b'"later":"field"' in content
    assert list(ledger.all()) == [lost(), lost(start=6), lost(start=7)]


def test_each_directory_has_its_own_and_all_are_summed(disk: DictDisk) -> None:
    disk.make_directory("/more")
    ledger = Ledger(disk)
    ledger.write(ROOT, [lost()])
    ledger.write("/more", [lost(0, 2)])
    assert (ledger.events, ledger.records) == (2, 6)
    assert list(reopened(disk)[0].all()) == [lost()]


def test_news_are_reported_once(disk: DictDisk) -> None:
    ledger = Ledger(disk)
    assert not ledger.is_news(ROOT)
    ledger.write(ROOT, [lost()])
    assert ledger.is_news(ROOT)
    assert not ledger.is_news(ROOT)
    ledger.write(ROOT, [lost()])
    assert not ledger.is_news(ROOT), "nothing was written"
