"""One poller for all browsers, and what it pushes to each: the rows of the channels that it shows, if they changed.

A source (`console.facts`) is asked as often as it says while a browser shows something made of it, and seldom or never
while none does. Between two looks it rests at least three times as long as a look takes, up to `REST_MAX_S`, so that a
large cluster is asked less often.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec
from anyio import to_thread

from strandline.base.value import Value
from strandline.client.admin.partitions import Place
from strandline.client.errors import StrandlineError
from strandline.console.facts import LOGS_MAX, Observed, Source
from strandline.console.table import Rows, Table
from strandline.console.view import Channel
from strandline.wire.frame import Malformed

LOG = logging.getLogger(__name__)
REST, REST_MAX_S = 3, 10.0
STATUS = "status"  # the channel of what could not be asked
HEARTBEAT_S = 15.0  # so that a browser that has gone is noticed


class Watched(Value, frozen=True):
    """What a browser shows."""

    stream: str
    channels: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()  # partitions whose logs it shows
    fresh: tuple[str, ...] = ()  # channels of which it has no rows (any more)


class Stream:
    """One browser's page."""

    def __init__(self, channels: Iterable[str]) -> None:
        self.id = secrets.token_urlsafe(12)
        self.seen: dict[str, int] = dict.fromkeys((STATUS, *channels), 0)  # the version of each channel
        self.places: tuple[Place, ...] = ()
        self.wake = asyncio.Event()


class Live:
    def __init__(self, observed: Observed, sources: Iterable[Source], channels: Iterable[Channel]) -> None:
        self.observed = observed
        self.sources = {source.name: source for source in sources}
        self.channels = {channel.name: channel for channel in channels}
        self.tables = {name: Table() for name in (STATUS, *self.channels)}
        self.streams: dict[str, Stream] = {}
        self.problems: dict[str, tuple[str, int]] = {}  # by source, and since when
        self.hurry = {name: asyncio.Event() for name in self.sources}
        self.needed: set[str] = set()  # sources of what is shown
        self.is_closed = False
        unknown = [name for channel in self.channels.values() for name in channel.of if name not in self.sources]
        assert not unknown, unknown
        self.tables[STATUS].put({})

    # --- browsers

    def watch(self, wanted: Watched) -> bool:
        """A page shows something else. False if the page is not known (any more)."""
        stream = self.streams.get(wanted.stream)
        if stream is None:
            return False
        known = [name for name in wanted.channels if name in self.channels]
        stream.seen = {name: 0 if name in wanted.fresh else stream.seen.get(name, 0) for name in (STATUS, *known)}
        stream.places = wanted.places[:LOGS_MAX]
        self.looked_at()
        stream.wake.set()
        return True

    def looked_at(self) -> None:
        """Another set of things is shown: make what nobody made before, and ask at once for what is new."""
        places = frozenset(place for stream in self.streams.values() for place in stream.places)
        needed = {source for name in self.shown() for source in self.channels[name].of}
        hurried = needed - self.needed | (needed & {"logs"} if places != self.observed.watched else set())
        self.observed.watched, self.needed = places, needed
        for name in self.shown():
            self.make(self.channels[name])
        for name in hurried:
            self.hurry[name].set()

    def shown(self) -> set[str]:
        return {name for stream in self.streams.values() for name in stream.seen if name in self.channels}

    async def events(self, channels: Iterable[str]) -> AsyncIterator[bytes]:
        """One page's events, until it goes."""
        stream = Stream(name for name in channels if name in self.channels)
        self.streams[stream.id] = stream
        try:
            yield event({"stream": stream.id})
            self.looked_at()
            while not self.is_closed:
                stream.wake.clear()
                for name in list(stream.seen):
                    changes = self.tables[name].since(stream.seen.get(name, 0))
                    if changes is not None and name in stream.seen:
                        stream.seen[name] = changes.version
                        yield event({"channel": name, **msgspec.structs.asdict(changes)})
                try:
                    await asyncio.wait_for(stream.wake.wait(), HEARTBEAT_S)
                except TimeoutError:
                    yield b":\n\n"
        finally:
            del self.streams[stream.id]
            self.looked_at()

    def close(self) -> None:
        """End all streams, since a server waits for them."""
        self.is_closed = True
        for stream in self.streams.values():
            stream.wake.set()

    # --- the cluster

    async def run(self) -> None:
        """Ask, until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for source in self.sources.values():
                tasks.create_task(self.poll(source))

    async def poll(self, source: Source) -> None:
        while True:
            self.hurry[source.name].clear()
            pause = self.pause(source)
            if pause is not None:
                pause = rest_s(pause, await self.ask(source))
            try:
                await asyncio.wait_for(self.hurry[source.name].wait(), pause)
            except TimeoutError:
                continue

    def pause(self, source: Source) -> float | None:
        """None: nobody needs it."""
        return source.every_s if source.name in self.needed else source.idle_s

    async def ask(self, source: Source) -> float:
        """How many seconds it took."""
        started = time.monotonic()
        try:
            self.learned(source.name, await to_thread.run_sync(source.ask, self.observed))
        except (StrandlineError, OSError, Malformed) as error:
            self.report(source.name, getattr(error, "problem", None) or str(error))
        except Exception as error:  # a defect of the console must not end what it shows besides
            LOG.exception("asking for %s", source.name)
            self.report(source.name, f"a defect of the console: {error!r}")
        else:
            self.report(source.name, "")
        return time.monotonic() - started

    def learned(self, source: str, value: Any) -> None:
        self.observed.learn(source, value)
        for name in self.shown():
            if source in self.channels[name].of:
                self.make(self.channels[name])

    def report(self, source: str, problem: str) -> None:
        if problem:
            since = self.problems[source][1] if source in self.problems else int(time.time() * 1000)
            self.problems[source] = (problem, since)
        else:
            self.problems.pop(source, None)
        rows = {name: {"problem": text, "since_ms": since} for name, (text, since) in self.problems.items()}
        self.put(STATUS, rows)

    def make(self, channel: Channel) -> None:
        self.put(channel.name, channel.rows(self.observed.facts))

    def put(self, channel: str, rows: Rows) -> None:
        if self.tables[channel].put(rows):
            for stream in self.streams.values():
                if channel in stream.seen:
                    stream.wake.set()


def rest_s(pause_s: float, took_s: float) -> float:
    """Until a source is asked again that took so long. What hung in an outage is asked soon after it."""
    return max(pause_s, min(REST * took_s, REST_MAX_S))


def event(content: object) -> bytes:
    """JSON has no line breaks, so one line holds it."""
    return b"data: " + msgspec.json.encode(content) + b"\n\n"
