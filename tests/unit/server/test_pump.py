"""The pump: effects at once, the timer, durability, and the end."""

import asyncio
import logging
from pathlib import Path

import pytest
from tests.unit.server.network.echo import rig, run

from strandline.base.effects import Halt, Report, Save, Sync, Synced, SyncFailed
from strandline.base.ports import DiskError, DiskFull
from strandline.base.time import Instant
from strandline.server.clock import AHEAD_MS, Clock
from strandline.server.pump import CRASHED, DISK_FAILED, OUT_OF_ROOM
from strandline.server.storage.disk import RealDisk
from strandline.server.storage.flusher import Flusher


def test_start_effects_are_performed(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with rig(first=[Report("warning", "low on tea")]):
            pass

    with caplog.at_level(logging.INFO, "strandline"):
        run(scenario)
    assert [(r.levelname, r.message) for r in caplog.records] == [("WARNING", "low on tea")]


def test_the_node_expires_at_its_deadline_and_not_before() -> None:
    async def scenario() -> None:
        async with rig() as it:
            now = Clock().now()
            it.node.wakes = [Instant(now + 20), Instant(now + 60)]
            client = await it.client()
            client.send(1)
            await client.answer()
            # EchoNode asserts that no expiry is early.
            await it.until(lambda: len(it.node.expired) == 2)
            assert it.stops == []

    run(scenario)


def test_a_deadline_that_moved_away_is_kept_without_a_new_timer() -> None:
    async def scenario() -> None:
        async with rig() as it:
            now = Clock().now()
            client = await it.client()
            it.node.wakes = [Instant(now + 30)]
            client.send(1)
            await client.answer()
            timer = it.pump.timer
            it.node.wakes = [Instant(now + 80)]
            client.send(2)
            await client.answer()
            assert it.pump.timer is timer
            await it.until(lambda: it.node.expired)
            assert it.node.expired[0] >= now + 80

    run(scenario)


def test_a_crash_of_the_node_is_reported_with_its_event_and_nothing_runs_after_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with rig() as it:
            client = await it.client()
            client.send(1, "crash")
            await it.until(lambda: it.stops)
            assert it.stops == [(CRASHED, "crashed: RuntimeError: told to")]
            client.send(2)
            other = await it.client()
            other.send(3)
            await it.until(lambda: len(it.net.connections) == 2)
            assert len(it.node.events) == 1

    with caplog.at_level(logging.ERROR, "strandline"):
        run(scenario)
    assert "HeartbeatRequest" in caplog.text
    assert "told to" in caplog.text


def test_shutdown_ends_with_the_nodes_halt() -> None:
    async def scenario() -> None:
        async with rig() as it:
            it.pump.shutdown()
            assert it.stops == [(0, "asked to")]

    run(scenario)


def test_syncs_and_saves_are_answered_in_order_once_durable(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "log").write_bytes(b"x")
        save = Save(str(tmp_path / "checkpoint"), b"1", ("m", 2))
        again = Save(str(tmp_path / "checkpoint"), b"2", ("m", 3))
        first = [Sync((str(tmp_path / "log"), str(tmp_path)), ("m", 1)), save, again, Sync((), ("m", 4))]
        async with rig(first=first) as it:
            assert it.node.events == [], "never while the effect is performed"
            await it.until(lambda: len(it.node.events) == 4)
            assert it.node.events == [Synced(("m", n)) for n in range(1, 5)]
            assert (tmp_path / "checkpoint").read_bytes() == b"2"

    run(scenario)


def test_a_flush_that_fails_ends_the_node_and_is_never_answered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with rig(first=[Save(str(tmp_path / "missing" / "a"), b"1", ("m", 1))]) as it:
            await it.until(lambda: it.stops)
            assert it.stops[0][0] == DISK_FAILED
            assert it.node.events == []

    run(scenario)


def test_of_a_disk_that_fails_an_operator_hears_where_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with rig() as it:
            it.pump.crash(DiskError(f"{tmp_path}/a: Input/output error"), "an event")
            where = f"{tmp_path}/a: Input/output error"
            assert it.stops == [(DISK_FAILED, f"it cannot go on without this log directory: {where}")]

    with caplog.at_level(logging.INFO, "strandline"):
        run(scenario)
    assert not caplog.records, "no defect of the node: neither the event nor a trace"


def test_a_node_without_room_stops_and_is_no_crash(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with rig() as it:
            it.pump.crash(DiskFull(f"{tmp_path}/a: No space left on device"), "an event")
            it.pump.shutdown()
            assert it.stops == [(OUT_OF_ROOM, f"disk full: {tmp_path}/a: No space left on device")]

    with caplog.at_level(logging.INFO, "strandline"):
        run(scenario)
    assert "Traceback" not in caplog.text
    assert "crashed" not in caplog.text


def test_a_save_on_a_full_disk_is_reported_as_such_where_the_node_can_survive_it(tmp_path: Path) -> None:
    class Full(RealDisk):
        def replace(self, path: str, content: bytes) -> None:
            raise DiskFull(f"{path}: No space left on device")

    async def scenario() -> None:
        async with rig() as it:
            flusher = Flusher(it.loop, Full(), it.pump.event, it.pump.crash, is_vital=False)
            flusher.submit(Save(str(tmp_path / "a"), b"1", ("m", 1)))
            await it.until(lambda: it.node.events)
            assert it.node.events == [SyncFailed(("m", 1), f"{tmp_path}/a: No space left on device", is_full=True)]
            vital = Flusher(it.loop, Full(), it.pump.event, it.pump.crash)
            vital.submit(Save(str(tmp_path / "a"), b"1", ("m", 2)))
            await it.until(lambda: it.stops)
            assert it.stops[0][0] == OUT_OF_ROOM
            flusher.close()
            vital.close()

    run(scenario)


def test_a_flush_that_the_node_can_survive_fails_only_for_the_logs_that_it_concerns(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing" / "a")
    wanted = [Save(missing, b"1", ("m", 1)), Save(str(tmp_path / "b"), b"2", ("m", 2)), Sync((missing,), ("m", 3))]

    async def scenario() -> None:
        async with rig() as it:
            flusher = Flusher(it.loop, RealDisk(), it.pump.event, it.pump.crash, is_vital=False)
            for effect in wanted:
                flusher.submit(effect)
            await it.until(lambda: len(it.node.events) == 3)
            flusher.close()
            failed, saved, other = it.node.events
            assert isinstance(failed, SyncFailed)
            assert failed.token == ("m", 1)
            assert missing in failed.why
            assert saved == Synced(("m", 2))
            assert other.token == ("m", 3)
            assert it.stops == []

    run(scenario)


def test_the_clock_is_the_wall_clock_and_never_runs_backwards() -> None:
    import time

    clock = Clock()
    assert abs(clock.now() - time.time() * 1000) < 1000
    seen = [clock.now() for _ in range(1000)]
    assert seen == sorted(seen)


def test_a_wall_clock_that_jumped_is_found_at_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Clock()
    monkeypatch.setenv(AHEAD_MS, "-3600000")
    assert Clock().now() < before.now() - 3_000_000


def test_a_deadline_that_is_due_is_not_put_off_by_events_that_follow_each_other_fast() -> None:
    async def scenario() -> None:
        async with rig() as it:
            client = await it.client()
            due = Instant(Clock().now())
            it.node.wakes = [due]
            client.send(1)
            await client.answer()
            timer = it.pump.timer
            client.send(2)
            await client.answer()
            assert it.node.expired or it.pump.timer is timer
            await it.until(lambda: it.node.expired)

    run(scenario)


def test_a_node_that_halts_with_something_due_has_not_crashed(caplog: pytest.LogCaptureFixture) -> None:
    """One that no controller takes in time, say: what it still wanted to do is not looked at."""

    async def scenario() -> None:
        async with rig() as it:
            it.node.wakes = [Instant(Clock().now() + 50)]
            it.node.then = [Halt("not in time", 1)]
            it.pump.event(Synced(("m", 1)))
            assert it.stops == [(1, "not in time")]

    with caplog.at_level(logging.ERROR, "strandline"):
        run(scenario)
    assert caplog.records == []


def test_the_deadline_is_asked_once_for_all_events_of_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with rig() as it:
            await asyncio.sleep(0)
            asked = []
            deadline = it.node.deadline
            monkeypatch.setattr(it.node, "deadline", lambda: asked.append(1) or deadline())
            it.node.wakes = [Instant(Clock().now() + 20)]
            for number in range(3):
                it.pump.event(Synced(("m", number)))
            assert (asked, it.pump.timer) == ([], None)
            await asyncio.sleep(0)
            assert len(asked) == 1 and it.pump.timer is not None
            await it.until(lambda: it.node.expired)

    run(scenario)


def test_a_node_that_cannot_say_when_it_is_due_has_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with rig() as it:
            monkeypatch.setattr(it.node, "deadline", lambda: 1 // 0)
            it.pump.event(Synced(("m", 1)))
            await it.until(lambda: it.stops)
            assert it.stops[0][0] == CRASHED

    run(scenario)
