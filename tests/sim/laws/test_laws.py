"""The laws fire: what they forbid is done to a running cluster, by hand."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.sim.play import ORDERS, SETTINGS, Play

from strandline.log.log import Appended, Log
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.isr import Committed
from strandline.replica.hosting.leader import Leader
from strandline.replica.serving import reading
from strandline.replica.serving.selection import RACK_AWARE
from strandline.sim.clients.nearby import Nearby
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.sim.world.violation import Violation
from strandline.wire.batch import build, read_header


def of_leader(play: Play) -> tuple[Machine, Hosted, Leader]:
    machine = play.leader()
    hosted = hosted_on(machine)
    assert isinstance(hosted.role, Leader)
    return machine, hosted, hosted.role


def hosted_on(machine: Machine) -> Hosted:
    assert machine.node is not None and machine.node.broker is not None
    hosted = machine.node.broker.replicas.host.partitions.named(*ORDERS)
    assert hosted is not None
    return hosted


def other(play: Play) -> Machine:
    return next(machine for machine in play.machines if machine is not play.leader())


def watermark_falls(play: Play) -> None:
    leader = of_leader(play)[2]
    leader.advance = lambda now: False  # type: ignore[method-assign]
    leader.high_watermark -= 1


def leader_makes_its_own_isr(play: Play) -> None:
    leader = of_leader(play)[2]
    leader.isr = Committed((leader.cluster.me,))
    leader.min_isr = 1
    leader.followers = {}


def leader_forgets_the_gate(play: Play) -> None:
    """Min ISR 3, one replica gone, and a leader that does not care."""
    play.admin.wish(lambda: play.admin.configure("orders", "min.insync.replicas", "3"))
    play.run(500)
    other(play).kill()
    play.run(300)
    of_leader(play)[2].min_isr = 1


def follower_believes_too_much(play: Play) -> None:
    hosted = hosted_on(other(play))
    hosted.role.high_watermark = hosted.log.log_end_offset + 5  # type: ignore[union-attr]


def follower_has_other_records(play: Play) -> None:
    """A follower's last batch, which is committed, has other records; then it is to lead."""
    machine = other(play)
    hosted = hosted_on(machine)
    while hosted.high_watermark < hosted.log.log_end_offset:
        play.run(1)
    *_, last = hosted.log.headers(hosted.high_watermark - 1)
    hosted.log.truncate_to(last.base_offset)
    records = [(play.scene.wall_ms(), None, b"impostor", ())] * last.record_count
    producer = {"producer_id": last.producer_id, "producer_epoch": last.producer_epoch}
    batch = bytearray(build(records, base_sequence=last.base_sequence, **producer))
    hosted.log.append_as_leader(batch, 0, machine.clock.now())
    play.leader().kill()


def metadata_differs(play: Play) -> None:
    image = other(play).node.image  # type: ignore[union-attr]
    image.features["metadata.version"] = 1
    play.leader().kill()


def index_is_wrong(play: Play) -> None:
    log = hosted_on(other(play)).log
    log.active.index.append(log.log_end_offset - 1, 7)


def time_index_is_wrong(play: Play) -> None:
    log = hosted_on(other(play)).log
    log.active.time_index.append(log.active.max_timestamp + 1, log.log_end_offset - 1)


def producers_are_no_longer_noted(play: Play) -> None:
    hosted_on(other(play)).log.producers.appended = lambda *_, **__: None  # type: ignore[method-assign]


def producers_are_invented(play: Play) -> None:
    log = hosted_on(other(play)).log
    producer = next(iter(log.producers.known.values()))
    log.producers.known[4711] = producer


def answering(play: Play, change: Callable[[Log, Any, Appended], Appended | None]) -> None:
    """What the leader's log says of an append is not what it did; `change` gets the log and the records, too."""
    log = of_leader(play)[1].log
    append = log.append_as_leader

    def lie(records: Any, *rest: Any, **options: Any) -> Any:
        done = append(records, *rest, **options)
        return change(log, records, done) or done if isinstance(done, Appended) else done

    log.append_as_leader = lie  # type: ignore[method-assign]


def another_offset_is_answered(play: Play) -> None:
    answering(
        play,
        lambda log, records, done: Appended(
            done.base_offset - 1, done.last_offset - 1, -1, log.log_start_offset, done.size_bytes
        ),
    )


def a_duplicate_is_answered_of_what_is_not_there(play: Play) -> None:
    def change(log: Log, records: Any, done: Appended) -> Appended | None:
        log.truncate_to(done.base_offset)
        return Appended(done.base_offset, done.last_offset, -1, log.log_start_offset, duplicate=True)

    answering(play, change)


def other_records_are_written(play: Play) -> None:
    log = of_leader(play)[1].log
    append = log.append_as_leader

    def write(records: Any, *rest: Any, **options: Any) -> Any:
        header = read_header(records)
        other = build(
            [(play.scene.wall_ms(), None, b"impostor", ())] * header.record_count,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )
        return append(bytearray(other), *rest, **options)

    log.append_as_leader = write  # type: ignore[method-assign]


def a_sequence_is_left_out(play: Play) -> None:
    hosted = of_leader(play)[1]
    hosted.log.producers.judge = lambda batch: None  # type: ignore[method-assign]
    (producer,) = (client for client in play.scene.clients if client.name == "pa")
    producer.sequence += 5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("harm", "law"),
    [
        (another_offset_is_answered, "and there is|and its high watermark"),
        (a_duplicate_is_answered_of_what_is_not_there, "nothing is there|and its high watermark"),
        (other_records_are_written, "and other records are there"),
        (a_sequence_is_left_out, "and behind sequence"),
    ],
)
def test_an_answer_to_a_producer_that_is_not_true_is_noticed(harm: Callable[[Play], None], law: str) -> None:
    play = Play()
    harm(play)
    with pytest.raises(Violation, match=law):
        play.run(3_000)


@pytest.mark.parametrize(
    ("harm", "law"),
    [
        (watermark_falls, "the high watermark of orders-0 fell"),
        (leader_makes_its_own_isr, "for the ISR of orders-0"),
        (leader_forgets_the_gate, "under min ISR 3"),
        (follower_believes_too_much, "high watermark"),
        (follower_has_other_records, "orders-0"),
        (metadata_differs, "image"),
        (index_is_wrong, "the index has offset"),
        (time_index_is_wrong, "the time index has"),
        (producers_are_no_longer_noted, "of producer"),
        (producers_are_invented, "of producer 4711"),
    ],
)
def test_a_broken_law_is_noticed(harm: Callable[[Play], None], law: str) -> None:
    play = Play()
    harm(play)
    with pytest.raises(Violation, match=law):
        play.run(8000)
        play.end()


def test_consumers_that_are_sent_out_of_the_isr_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(options=Options(racks=3, settings=SETTINGS | {"replica.selector.class": RACK_AWARE}))
    play.enter(Nearby(play.scene, "near", ORDERS))
    gone = other(play)
    gone.kill()
    play.run(4000)
    monkeypatch.setattr(reading, "preferred_read_replica", lambda *_, **__: gone.node_id)
    with pytest.raises(Violation, match="sends consumers of orders-0 to"):
        play.run(4000)


def test_a_node_that_crashes_is_a_violation_with_the_event_it_crashed_on() -> None:
    play = Play()
    machine = play.machines[0]
    assert machine.node is not None
    machine.node.step = None  # type: ignore[method-assign, assignment]
    with pytest.raises(Violation, match="TypeError") as caught:
        play.run(2000)
    assert "while handling" in caught.value.evidence
