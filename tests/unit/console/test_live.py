"""One poller for all browsers: who is asked when, and which events a page gets."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from strandline.base.value import Value
from strandline.client.admin.partitions import Place
from strandline.client.ask import config_of
from strandline.client.errors import StrandlineError
from strandline.console.facts import Observed, Source
from strandline.console.live import REST_MAX_S, Live, Watched, rest_s
from strandline.console.view import Channel


class Numbers(Value, frozen=True):
    """In the place of the real facts."""

    a: int = 0
    b: int = 0
    logs: int = 0


class Asked:
    def __init__(self) -> None:
        self.counts = {"a": 0, "b": 0, "logs": 0}
        self.fails = False
        self.observed = Observed(config_of("127.0.0.1:1"))
        self.observed.facts = Numbers()  # type: ignore[assignment]  # in the place of the real facts

    def source(self, name: str, every_s: float, idle_s: float | None) -> Source:
        def ask(_: Observed) -> int:
            self.counts[name] += 1
            if self.fails:
                raise StrandlineError("no cluster answers", "start one")
            return self.counts[name]

        return Source(name, ask, every_s, idle_s)

    def live(self, every_s: float = 3600.0) -> Live:
        sources = [
            self.source("a", every_s, None),
            self.source("b", every_s, 3600.0),
            self.source("logs", every_s, None),
        ]
        rows = lambda name: lambda facts: {"n": getattr(facts, name)}  # noqa: E731  # three of a kind
        return Live(self.observed, sources, [Channel(name, (name,), rows(name)) for name in ("a", "b", "logs")])


async def following(events: Any) -> Any:
    return json.loads((await asyncio.wait_for(anext(events), 10)).removeprefix(b"data: "))


async def until_row(events: Any, channel: str, row: Any) -> None:
    while True:
        event = await following(events)
        if event.get("channel") == channel and row in event["rows"].values():
            return


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 30))  # type: ignore[arg-type]  # a coroutine


def test_what_hung_in_an_outage_is_asked_soon_after_it() -> None:
    assert [rest_s(1.0, took) for took in (0.1, 0.5, 60.0)] == [1.0, 1.5, REST_MAX_S]
    assert rest_s(15.0, 60.0) == 15.0


def test_what_no_browser_shows_is_asked_seldom_or_not_at_all() -> None:
    async def test() -> None:
        asked = Asked()
        live = asked.live()
        polling = asyncio.create_task(live.run())
        while not asked.counts["b"]:
            await asyncio.sleep(0.001)
        events = live.events(["a"])
        assert "stream" in await following(events)
        await until_row(events, "a", 1)
        assert asked.counts == {"a": 1, "b": 1, "logs": 0}
        polling.cancel()
        await events.aclose()
        assert live.streams == {}

    run(test)


def test_a_page_gets_whole_rows_first_and_then_what_changes_of_what_it_watches() -> None:
    async def test() -> None:
        asked = Asked()
        live = asked.live()
        events = live.events(["a", "nonsense"])
        stream = (await following(events))["stream"]
        first = [await following(events) for _ in range(2)]
        assert [(event["channel"], event["is_whole"]) for event in first] == [("status", True), ("a", True)]
        live.learned("a", 7)
        assert await following(events) == {
            "channel": "a",
            "version": 2,
            "is_whole": False,
            "rows": {"n": 7},
            "gone": [],
        }
        assert live.watch(Watched(stream, ("b",)))
        live.learned("a", 8)
        event = await following(events)
        assert (event["channel"], event["is_whole"]) == ("b", True)
        assert live.watch(Watched(stream, ("b",), fresh=("b",)))
        event = await following(events)
        assert (event["channel"], event["is_whole"]) == ("b", True), "a page that has forgotten its rows gets all"
        assert not live.watch(Watched("unknown", ("b",)))
        await events.aclose()

    run(test)


def test_a_page_that_shows_logs_of_other_partitions_has_them_asked_for_at_once() -> None:
    async def test() -> None:
        asked = Asked()
        live = asked.live()
        polling = asyncio.create_task(live.run())
        events = live.events(["logs"])
        stream = (await following(events))["stream"]
        await until_row(events, "logs", 1)
        places = (Place("t", 0), Place("t", 1))
        live.watch(Watched(stream, ("logs",), places))
        assert asked.observed.watched == set(places)
        await until_row(events, "logs", 2)
        polling.cancel()
        await events.aclose()
        assert asked.observed.watched == frozenset()

    run(test)


def test_a_cluster_that_does_not_answer_is_reported_until_it_does_and_what_was_known_stays() -> None:
    async def test() -> None:
        asked = Asked()
        live = asked.live(every_s=0.01)
        polling = asyncio.create_task(live.run())
        events = live.events(["a"])
        await until_row(events, "a", 1)
        asked.fails = True
        while True:
            event = await following(events)
            if event["channel"] == "status" and "a" in event["rows"]:
                assert event["rows"]["a"]["problem"] == "no cluster answers"
                break
        assert live.tables["a"].rows["n"][1] >= 1
        asked.fails = False
        while event["channel"] != "status" or "a" not in event["gone"]:
            event = await following(events)
        polling.cancel()
        await events.aclose()

    run(test)


def test_all_streams_end_when_the_server_stops() -> None:
    async def test() -> None:
        live = Asked().live()
        events = live.events(["a"])
        for _ in range(3):
            await following(events)
        live.close()
        assert [event async for event in events] == []

    run(test)
