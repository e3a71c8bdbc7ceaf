"""The diagram of a run: well-formed, bounded, the same each time, and with everything in its place."""

import re
from itertools import pairwise
from pathlib import Path
from random import Random
from xml.etree import ElementTree

from strandline.sim.diagram import svg, write_page
from strandline.sim.diagram.layout import spread, tick_ms
from strandline.sim.diagram.messages import ELECTION, FETCH, READ, choose, kind_of
from strandline.sim.diagram.spans import controllers, leaderships, lives, pauses, states, steps
from strandline.sim.world.trace import Kind, Moment, Passage, Trace

NS = "{http://www.w3.org/2000/svg}"
BYTES_MAX = 5_000_000
EVIL = "a < b & \"c\" 'd' </script><script>alert(1)</script> ]]> \x00\x1b @title@ é"


def trace_of(*moments: Moment) -> Trace:
    trace = Trace()
    trace.moments.extend(moments)
    return trace


def small() -> Trace:
    """Three nodes; the leader dies, the next one leads, and something is wrong."""
    trace = trace_of(
        *(Moment(0, name, Kind.STARTED, "starts") for name in ("n1", "n2", "n10")),
        Moment(5, "n1", Kind.CONTROLLER, "is the active controller (epoch 1)"),
        Moment(10, "", Kind.ISR, "orders-0: leader 1, epoch 0, ISR [1, 2] (partition epoch 0)", "orders-0"),
        Moment(12, "n1", Kind.LEADS, "leads orders-0", "orders-0", 0, 0, 0),
        Moment(20, "n1", Kind.HIGH_WATERMARK, "orders-0: high watermark 3", "orders-0", 3, 3, 0),
        Moment(100, "", Kind.FAULT, "the network is cut"),
        Moment(110, "n1", Kind.KILLED, "is killed"),
        Moment(120, "n2", Kind.LEADS, "leads orders-0", "orders-0", 2, 3, 1),
        Moment(121, "n2", Kind.LEADS, "leads other-0", "other-0", 0, 0, 1),
        Moment(150, "n1", Kind.STARTED, "starts"),
        Moment(160, "n1", Kind.TRUNCATED, "orders-0: cut from 4 to 2", "orders-0", 2, 2),
        Moment(170, "pa", Kind.CLIENT, "is refused"),
        Moment(200, "", Kind.VIOLATION, "n2 lost a record of orders-0"),
    )
    trace.passages += [
        Passage(10, 13, "n2", "n1", "Fetch", False, ("orders-0",)),
        Passage(14, 16, "n1", "n2", "Fetch", True),
        Passage(30, 31, "pa", "n1", "Produce", False, ("orders-0",)),
        Passage(105, -1, "n1", "n2", "Vote", False),
        Passage(130, 135, "n10", "n2", "Fetch", False, ("other-0",)),
        Passage(140, 140, "n2", "n2", "Fetch", False),
    ]
    return trace


def huge() -> Trace:
    random = Random(1)
    nodes = [f"n{n}" for n in range(1, 6)]
    clients = [f"p{letter}" for letter in "abcdefghij"]
    partitions = [f"a-topic-with-a-rather-long-name-{n}" for n in range(12)]
    trace = trace_of(*(Moment(0, name, Kind.STARTED, "starts") for name in nodes))
    for at in range(0, 40_000, 4):
        number = random.randrange(12)
        name, node = partitions[number], nodes[number % 5]
        trace.moments.append(Moment(at, node, Kind.HIGH_WATERMARK, f"{name}: high watermark {at}", name, at, at, 0))
        trace.moments.append(Moment(at, random.choice(clients), Kind.CLIENT, f"is refused {at} " + "because " * 9))
    for number in range(60_000):
        source, target = random.sample(nodes, 2) if random.random() < 0.6 else (random.choice(clients), nodes[0])
        sent = number * 40_000 // 60_000
        name = random.choice(("Fetch", "Produce", "Metadata"))
        trace.passages.append(Passage(sent, sent + 5, source, target, name, random.random() < 0.5, tuple(partitions)))
    trace.moments.append(Moment(40_000, "", Kind.VIOLATION, "something is wrong"))
    return trace


def elements(text: str, name: str, css: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(text)
    return [one for one in root.iter(NS + name) if css in one.get("class", "").split()]


def titles(text: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(text).iter(NS + "title")]


# --- the picture


def test_machines_have_lanes_in_the_order_of_their_numbers_and_clients_stand_below() -> None:
    names = [one.text for one in elements(svg(small(), (0, 210)), "text", "name")]
    assert names == ["cluster", "n1", "n2", "n10", "pa"]


def test_a_message_is_an_arrow_from_when_and_where_it_was_sent_to_when_and_where_it_came() -> None:
    text = svg(small(), (0, 210))
    arrow = next(one for one in elements(text, "line", "fetch") if one.get("data-t") == "10 13")
    assert arrow.get("data-l") == "2 1"
    x1, x2, y1, y2 = (float(arrow.get(key, "")) for key in ("x1", "x2", "y1", "y2"))
    assert x1 < x2
    assert y1 > y2
    assert "Fetch n2 → n1 · 10 to 13 ms · orders-0" in titles(text)
    assert [one.get("data-t") for one in elements(text, "line", "answer")] == ["14 16"]


def test_a_lost_message_ends_in_a_cross_and_one_to_oneself_is_not_drawn() -> None:
    text = svg(small(), (0, 210))
    assert [one.get("data-t") for one in elements(text, "path", "lost")] == ["105"]
    assert any("Vote n1 → n2 · sent at 105 ms and lost" in title for title in titles(text))
    assert not any("n2 → n2" in title for title in titles(text))


def test_only_the_window_is_drawn() -> None:
    text = svg(small(), (125, 210))
    assert [one.get("data-t") for one in elements(text, "line", "m")] == ["130 135"]
    assert elements(text, "path", "death") == []
    assert len(elements(text, "line", "violation-line")) == 1
    assert elements(svg(small(), (0, 90)), "line", "violation-line") == []


def test_only_the_partitions_that_were_asked_for_have_tracks_and_messages() -> None:
    text = svg(small(), (0, 210), ("orders-0",))
    shown = {one.get("data-partition") for one in elements(text, "g", "track") if one.get("display") != "none"}
    assert shown == {"orders-0"}
    assert "130 135" not in [one.get("data-t") for one in elements(text, "line", "m")]
    assert "14 16" in [one.get("data-t") for one in elements(text, "line", "m")]


def test_steps_stay_in_their_track_though_an_earlier_leader_had_more() -> None:
    def heard(at_ms: int, machine: str, high_watermark: int, epoch: int) -> Moment:
        return Moment(at_ms, machine, Kind.LEADS, "", "orders-0", high_watermark, high_watermark, epoch)

    trace = trace_of(*(Moment(0, name, Kind.STARTED, "starts") for name in ("n1", "n2")))
    trace.moments += [heard(1, "n1", 900, 0), heard(50, "n2", 30, 1), heard(80, "n2", 40, 1)]
    for window in ((0, 100), (60, 100), (85, 100)):
        for path in elements(svg(trace, window), "path", "steps"):
            heights = [float(y) for y in re.findall(r"(?:V|M\S+ )([-\d.]+)", path.get("d", ""))]
            assert heights
            assert all(0 <= y <= 19 for y in heights)


def test_what_failed_is_reported_in_red_and_the_machine_that_it_names_is_ringed() -> None:
    text = svg(small(), (0, 210))
    assert [one.text for one in elements(text, "text", "violation")] == ["n2 lost a record of orders-0"]
    assert [one.get("data-lane") for one in elements(text, "circle", "violation-ring")] == ["2"]


def test_deaths_starts_cuts_and_faults_have_their_marks() -> None:
    text = svg(small(), (0, 210))
    assert [len(elements(text, "path", css)) for css in ("death", "birth", "cut", "fault")] == [1, 4, 1, 1]


def test_any_text_is_only_text() -> None:
    trace = small()
    trace.moments.append(Moment(201, "n1", Kind.REPORT, f"warning: {EVIL}"))
    trace.moments.append(Moment(202, "", Kind.VIOLATION, EVIL))
    trace.moments.append(Moment(150, "n1", Kind.LEADS, EVIL, 'odd<&"-0', 1, 1, 1))
    trace.passages.append(Passage(190, 195, 'x<&"', "n1", EVIL, False, (EVIL,)))
    text = svg(trace, (0, 210))
    assert any("a < b & \"c\" 'd' </script>" in title for title in titles(text))
    assert "<script" not in text


def test_a_trace_of_nothing_is_a_picture_of_nothing() -> None:
    ElementTree.fromstring(svg(Trace(), (0, 0)))
    ElementTree.fromstring(svg(trace_of(Moment(5, "n1", Kind.RESUMED, "goes on")), (5, 5)))


def test_ticks_are_round_and_have_room() -> None:
    assert [tick_ms(span, 1500) for span in (10, 100, 2500, 40_000)] == [1, 10, 200, 5000]


def test_labels_stand_in_the_first_row_with_room_or_nowhere() -> None:
    assert spread([(0, 50), (10, 50), (20, 50), (56, 5), (70, 5)], 2) == [0, 1, -1, 0, 0]


# --- what lasts


def test_a_life_goes_from_start_to_death_and_a_pause_ends_with_either() -> None:
    trace = trace_of(
        Moment(1, "n1", Kind.STARTED, ""),
        Moment(2, "n1", Kind.PAUSED, ""),
        Moment(4, "n1", Kind.RESUMED, ""),
        Moment(5, "n1", Kind.PAUSED, ""),
        Moment(7, "n1", Kind.POWER_LOST, ""),
        Moment(8, "n2", Kind.STARTED, ""),
        Moment(9, "n1", Kind.STARTED, ""),
    )
    assert [(span.start_ms, span.end_ms) for span in lives(trace, "n1", 20)] == [(1, 7), (9, 20)]
    assert [(span.start_ms, span.end_ms) for span in pauses(trace, "n1", 20)] == [(2, 4), (5, 7)]
    assert lives(trace, "pa", 20) == []


def test_a_leader_that_moves_its_high_watermark_after_the_next_was_elected_overlaps_it() -> None:
    def heard(at_ms: int, machine: str, epoch: int, kind: Kind = Kind.HIGH_WATERMARK) -> Moment:
        return Moment(at_ms, machine, kind, "", "orders-0", at_ms, at_ms, epoch)

    trace = trace_of(heard(1, "n1", 0, Kind.LEADS), heard(5, "n2", 1, Kind.LEADS), heard(8, "n1", 0), heard(9, "n2", 1))
    spans = leaderships(trace, "orders-0", 20)
    assert [(span.machine, span.start_ms, span.end_ms) for span in spans] == [("n1", 1, 9), ("n2", 5, 20)]
    assert [(step.at_ms, step.high_watermark) for step in steps(trace, "orders-0", spans[0])] == [(1, 1), (8, 8)]


def test_a_leadership_ends_when_its_machine_dies_or_follows_or_another_leads() -> None:
    def leads(at_ms: int, machine: str, epoch: int) -> Moment:
        return Moment(at_ms, machine, Kind.LEADS, "", "orders-0", 0, 0, epoch)

    trace = trace_of(
        leads(1, "n1", 0),
        Moment(4, "n1", Kind.KILLED, ""),
        leads(6, "n1", 0),
        Moment(7, "n2", Kind.KILLED, ""),
        leads(9, "n2", 1),
        Moment(11, "n2", Kind.FOLLOWS, "", "other-0"),
        Moment(12, "n2", Kind.FOLLOWS, "", "orders-0"),
        leads(15, "n3", 2),
    )
    spans = [(span.machine, span.start_ms, span.end_ms) for span in leaderships(trace, "orders-0", 20)]
    assert spans == [("n1", 1, 4), ("n1", 6, 9), ("n2", 9, 12), ("n3", 15, 20)]
    assert leaderships(trace, "other-0", 20) == []


def test_two_controllers_at_once_are_both_seen_until_one_gives_up() -> None:
    turns = [Moment(at, f"n{1 + at % 2}", Kind.CONTROLLER, f"epoch {at % 2}") for at in range(2, 8)]
    trace = trace_of(*turns, Moment(7, "n1", Kind.REPORT, "info: no longer the active controller of epoch 0"))
    spans = [(span.machine, span.start_ms, span.end_ms) for span in controllers(trace, 20)]
    assert spans == [("n1", 2, 7), ("n2", 3, 20)]


def test_a_state_lasts_until_the_next_one() -> None:
    changes = [Moment(at, "", Kind.ISR, f"orders-0: leader {at} (partition epoch 1)", "orders-0") for at in (3, 8)]
    found = [(span.start_ms, span.end_ms, span.label) for span in states(trace_of(*changes), "orders-0", 10)]
    assert found == [(3, 8, "leader 3"), (8, 10, "leader 8")]
    assert states(Trace(), "orders-0", 10) == []


# --- messages


def passages(*times: int, name: str = "Fetch", source: str = "n1") -> list[Passage]:
    return [Passage(at, at + 1, source, "n2", name, False) for at in times]


def test_a_fetch_of_a_client_is_of_another_kind_than_one_of_a_node() -> None:
    fetch = passages(1)[0]
    assert kind_of(fetch, ["n1", "n2"]) == FETCH
    assert kind_of(fetch, ["n2"]) == READ
    assert kind_of(passages(1, name="Vote")[0], ["n1", "n2"]) == ELECTION


def test_alike_requests_are_one_ribbon_until_one_side_dies_or_falls_silent() -> None:
    trace = trace_of(Moment(50, "n2", Kind.KILLED, "is killed"), Moment(75, "n3", Kind.KILLED, "is killed"))
    trace.passages = passages(*range(10, 100, 10), *range(1000, 1100, 10), 2000)
    chosen = choose(trace, ["n1", "n2"], 0, 3000)
    assert [(one.first.sent_ms, one.last.sent_ms, one.count) for one in chosen.ribbons] == [
        (10, 40, 4),
        (50, 90, 5),
        (1000, 1090, 10),
    ]
    assert [p.sent_ms for p, alone in zip(chosen.arrows, chosen.alone, strict=True) if alone] == [2000]


def test_votes_lost_messages_and_a_few_fetches_stay_alone() -> None:
    trace = Trace()
    trace.passages = passages(*range(10), name="Vote") + passages(20, 21, 22)
    trace.passages += [Passage(at, -1, "n1", "n2", "Fetch", False) for at in range(30, 40)]
    chosen = choose(trace, ["n1", "n2"], 0, 100)
    assert chosen.ribbons == ()
    assert all(chosen.alone)


def test_answers_are_hidden_behind_ribbons_but_make_none() -> None:
    trace = Trace()
    trace.passages = [Passage(at, at + 1, "n1", "n2", "Fetch", True) for at in range(10)]
    chosen = choose(trace, ["n1", "n2"], 0, 100)
    assert chosen.ribbons == ()
    assert not any(chosen.alone)


def test_of_too_many_messages_the_latest_stay_and_the_others_are_counted() -> None:
    trace = Trace()
    trace.passages = passages(*range(100))
    chosen = choose(trace, ["n1", "n2"], 0, 98, limit=10)
    assert [p.sent_ms for p in chosen.arrows] == list(range(89, 99))
    assert chosen.from_ms == 89
    assert chosen.left_out == (("outside of the time shown", 1), ("too many, the earliest", 89))


def test_a_message_on_its_way_when_the_window_begins_is_in_it() -> None:
    trace = Trace()
    trace.passages = [Passage(1, 50, "n1", "n2", "Fetch", False), Passage(1, 9, "n1", "n2", "Fetch", False)]
    assert [p.arrived_ms for p in choose(trace, [], 10, 100).arrows] == [50]


# --- the page


def write(folder: Path, trace: Trace, **more: object) -> str:
    path = folder / "run.html"
    given: dict[str, object] = {"title": "seed 1", "verdict_text": "it broke", "replay": "strandline sim --seed 1"}
    write_page(str(path), trace, **(given | more))  # type: ignore[arg-type]
    ElementTree.parse(path.with_suffix(".svg"))
    return path.read_text("utf-8")


def picture_in(html: str) -> str:
    found = re.search(r'<div id="canvas">(<svg.*?</svg>\n)</div>', html, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_page_shows_everything_and_loads_nothing(tmp_path: Path) -> None:
    html = write(tmp_path, small())
    for text in ("<h1>seed 1</h1>", "it broke", "strandline sim --seed 1", "<td>100</td>", "the network is cut"):
        assert text in html
    assert re.findall(r"(?:src|href)=|url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", html) == []
    assert re.search(r"@[a-z_]+@", html) is None
    assert "prefers-color-scheme: dark" in html
    ElementTree.fromstring(picture_in(html))


def test_the_page_holds_the_whole_run_and_looks_at_its_end_first(tmp_path: Path) -> None:
    root = ElementTree.fromstring(picture_in(write(tmp_path, small(), window_ms=60)))
    assert (root.get("data-start"), root.get("data-end")) == ("140", "205")
    assert "10 13" in [one.get("data-t") for one in root.iter(NS + "line")]


def test_the_page_chooses_the_partitions_that_the_verdict_names(tmp_path: Path) -> None:
    def chosen(html: str) -> list[tuple[str, bool]]:
        return [(name, bool(is_)) for name, is_ in re.findall(r'data-partition="([^"]*)"( checked)?>', html)]

    boxes = dict(chosen(write(tmp_path, small(), verdict_text="orders-0: gone")))
    assert (boxes["orders-0"], boxes["other-0"]) == (True, False)
    boxes = dict(chosen(write(tmp_path, small(), partitions=("other-0",), verdict_text="orders-0: gone")))
    assert (boxes["orders-0"], boxes["other-0"]) == (False, True)
    assert all(is_ for name, is_ in chosen(write(tmp_path, small())) if name in ("orders-0", "other-0"))


def test_texts_in_the_page_cannot_leave_their_place(tmp_path: Path) -> None:
    trace = small()
    trace.moments.append(Moment(199, "n1", Kind.REPORT, EVIL, EVIL))
    html = write(tmp_path, trace, title=EVIL, verdict_text=EVIL, replay=EVIL)
    assert html.count("<script>") == html.count("</script>") == 1
    assert "alert(1)</" not in html
    assert "\x00" not in html
    assert "<title>a &lt; b &amp; &quot;c&quot;" in html
    ElementTree.fromstring(picture_in(html))


def test_the_same_trace_makes_the_same_bytes(tmp_path: Path) -> None:
    assert write(tmp_path, small()) == write(tmp_path, small())


def test_a_huge_run_makes_a_page_of_bounded_size_that_says_what_is_missing(tmp_path: Path) -> None:
    html = write(tmp_path, huge())
    assert len(html.encode()) < BYTES_MAX
    assert (tmp_path / "run.svg").stat().st_size < BYTES_MAX
    assert "50,000 too many, the earliest; no messages before 33,333 ms" in html
    picture = picture_in(html)
    sent = [int(one.get("data-t", "").split()[0]) for one in elements(picture, "line", "m")]
    assert len(sent) == 10_000
    assert min(sent) == 33_333
    assert len(elements(picture, "rect", "shade")) == 1


def test_moments_come_in_order_in_the_table(tmp_path: Path) -> None:
    times = [int(time) for time in re.findall(r'<tr class="[^"]*" data-t="(\d+)"', write(tmp_path, huge()))]
    assert len(times) > 100
    assert all(a <= b for a, b in pairwise(times))
