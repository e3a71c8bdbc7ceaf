"""The last replica's two stories: how they are judged, and how they are shown."""

from html.parser import HTMLParser
from io import StringIO

from rich.console import Console

from strandline.cli.lab.last_replica import as_json, is_shown, show
from strandline.client.admin.loss_ledger import Ledger
from strandline.demo.last_replica.page import page
from strandline.demo.last_replica.story import HAPPENS, Moment, Seen, judged, ledger_words, remark
from strandline.metadata.losses import EXACTLY
from strandline.wire.messages.own.describe_losses import Loss


def moment(step: str, **fields: object) -> Moment:
    brokers = tuple(Seen(n, "up", "in sync", 20, 10, 0) for n in range(3))
    known = {
        "at_s": 0.0,
        "brokers": brokers,
        "leader": 1,
        "leader_epoch": 1,
        "isr": (0, 1, 2),
        "elr": (),
        "high_watermark": 20,
        "sent": 10,
        "acknowledged": 10,
        "committed": 20,
    }
    return Moment(step, **{**known, **fields})  # type: ignore[arg-type]


def loss(replica: int, cause: str, old_epoch: int, new_epoch: int) -> Loss:
    return Loss(
        topic="last-replica",
        node_id=replica,
        replica=replica,
        start=10,
        end=20,
        certainty=EXACTLY,
        old_epoch=old_epoch,
        new_epoch=new_epoch,
        cause=cause,
    )


NONE = Ledger((), {})
OFF = judged(
    False,
    [
        *(moment(step) for step in ("before", "T0", "T1", "T2")),
        moment("T3", leader=-1, isr=(2,), high_watermark=None, acknowledged=0),
        moment("T4", leader=2, brokers=tuple(Seen(n, "up", "in sync", 20, 10, 10) for n in range(3))),
    ],
    [(n, n) for n in range(20)],
    {n: n if n < 10 else n + 100 for n in range(20)},
    Ledger(
        (
            loss(2, "the log ended below its high watermark", old_epoch=-1, new_epoch=-1),
            loss(1, "the leader's log differs", old_epoch=2, new_epoch=4),
        ),
        {},
    ),
)
ON = judged(
    True,
    [
        *(moment(step) for step in ("before", "T0")),
        moment("T1", elr=(1,), isr=(2,), leader=2, acknowledged=0),
        moment("T2", isr=(), elr=(1, 2), leader=-1, sent=0, acknowledged=0),
        *(moment(step) for step in ("T3", "T4")),
    ],
    [(n, n) for n in range(30)],
    {n: n for n in range(30)},
    Ledger((loss(2, "the log ended below its high watermark", old_epoch=-1, new_epoch=-1),), {}),
)


def test_a_record_that_is_read_nowhere_is_lost_and_its_offset_may_hold_another() -> None:
    assert (OFF.acknowledged, OFF.found, OFF.lost, OFF.replaced) == (20, 10, 10, 10)
    assert (OFF.first_lost, OFF.last_lost) == (10, 19)
    assert (ON.found, ON.lost, ON.replaced, ON.first_lost) == (30, 0, 0, None)


def test_a_record_that_is_read_at_another_offset_is_not_lost() -> None:
    story = judged(True, [], [(0, 5)], {0: 9, 3: 5}, NONE)
    assert (story.lost, story.replaced) == (0, 1)


def test_the_demonstration_shows_something_only_if_both_ends_are_as_they_should() -> None:
    nothing = judged(True, ON.moments, [], {}, NONE)
    assert is_shown(OFF, ON)
    assert not is_shown(ON, ON)
    assert not is_shown(OFF, OFF)
    assert not is_shown(OFF, nothing)
    assert as_json(OFF, ON)["holds"] is True


def test_remarks_say_what_was_seen() -> None:
    assert "nobody leads" in remark(OFF, "T3")
    assert "10 offsets that were acknowledged hold other records now" in remark(OFF, "T4")
    assert "so broker 1 still has everything that was committed" in remark(ON, "T1")
    assert "eligible are 1 and 2" in remark(ON, "T2")
    assert "gets what it lost from broker 1" in remark(ON, "T4")


def test_the_ledger_distinguishes_what_is_lost_from_what_one_broker_missed() -> None:
    assert ledger_words(OFF) == "The loss ledger says: exactly 10 records lost; 10 that broker 2 missed."
    assert ledger_words(ON) == "The loss ledger says: exactly 0 records lost; 10 that broker 2 missed, and got again."
    assert ledger_words(judged(True, [], [], {}, NONE)) == "The loss ledger is empty."


def shown(width: int) -> str:
    written = StringIO()
    show(OFF, ON, Console(file=written, width=width, color_system=None))
    return written.getvalue()


def test_the_terminal_shows_both_stories_whole_at_any_width() -> None:
    for width in (60, 80, 120, 200):
        text = shown(width)
        assert all(len(line) <= width for line in text.splitlines())
        assert "…" not in text
        assert "10 lost of 20 " in text
        assert "0 lost of 30 " in text
        assert text.count("ELR off") == text.count("ELR on") == len(HAPPENS) + 1
    assert "╳" in shown(120)


class Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.linked: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.linked += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    document = page(OFF, ON)
    reader = Balanced()
    reader.feed(document)
    reader.close()
    assert reader.open == []
    assert reader.linked == []
    assert "url(" not in document
    assert "@" not in document.partition("<body>")[2]
    assert document.count('class="broker ') == 2 * 3 * len(HAPPENS)
    assert "<b>10</b><span>of 20 acknowledged records are gone: numbers 10 to 19</span>" in document
    assert "<b>0</b><span>of 30 acknowledged records are gone</span>" in document
    for step in HAPPENS:
        assert remark(ON, step) in document
    assert "<li>broker 1: exactly 10 records, offsets 10 to 19: the leader's log differs</li>" in document
