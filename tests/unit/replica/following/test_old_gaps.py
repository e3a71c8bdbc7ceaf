"""A topic is compacted no more, and its logs keep their old gaps: new replicas copy them, and no other gaps."""

import pytest
from tests.unit.log.compaction.compacting import keyed
from tests.unit.replica.conftest import AT
from tests.unit.replica.storage.test_cleaning import (
    AT_NAME,
    COMPACT,
    FLUSHED,
    LOOK,
    OFTEN,
    checkpoint,
    configure,
    log_of,
    stored,
    write,
)
from tests.unit.replica.storage.test_directories import HOME, Jbod

from strandline.base.effects import Answered
from strandline.base.ids import NodeId
from strandline.wire.messages.records.fetch import FetchResponse

TWO, THREE = NodeId(2), NodeId(3)


@pytest.fixture
def world() -> Jbod:
    """Broker 1 leads a log with gaps of a topic that is compacted no more; broker 3 is to have a copy, and has none."""
    jbod = Jbod(static=OFTEN)
    jbod.create_in(*HOME[:2])
    configure(jbod, **COMPACT)
    write(jbod, 30)
    jbod.run(FLUSHED + LOOK)
    configure(jbod, cleanup_policy="delete")
    assert len(stored(jbod, 1)) < 10
    return jbod


def add_a_replica(world: Jbod) -> None:
    world.change(replicas=(1, 2, 3), directories=HOME)
    world.run(100)


@pytest.mark.parametrize("restart", [False, True])
def test_a_new_replica_copies_the_old_gaps(world: Jbod, restart: bool) -> None:
    if restart:
        world.kill(NodeId(1))
        world.start(NodeId(1), clean=True)
    add_a_replica(world)
    assert stored(world, 3) == stored(world, 1)
    assert log_of(world, 3).log_end_offset == 30
    assert checkpoint(world, 3) == ["t 0 0"]
    assert not any("refused" in text for text in world.reports)


def test_the_copy_has_its_gaps_after_a_crash(world: Jbod) -> None:
    add_a_replica(world)
    world.kill(THREE)
    world.start(THREE, clean=False)
    assert stored(world, 3) == stored(world, 1)


def test_a_copy_of_the_copy_has_them_too(world: Jbod) -> None:
    """Its own cleaner has never looked at that log."""
    add_a_replica(world)
    world.change(leader=3, isr=(3,))
    world.kill(TWO)
    for name in ("/d0/t-0", f"/d0/{checkpoint_file()}"):
        world.disks[TWO].remove_tree(name) if name.endswith("-0") else world.disks[TWO].remove(name)
    world.start(TWO, clean=False)
    world.run(200)
    assert stored(world, 2) == stored(world, 1)


def checkpoint_file() -> str:
    return "cleaner-offset-checkpoint"


def test_a_gap_behind_the_last_old_one_is_damage(world: Jbod) -> None:
    """No cleaner was there: so the leader's log lacks records, and nobody is to take that for what it should be."""
    add_a_replica(world)
    for node in (1, 3):
        assert log_of(world, node).gaps_end == 30
        assert not log_of(world, node).gaps.may_precede(31)
        assert log_of(world, node).gaps.may_precede(30)


@pytest.mark.parametrize(("bound", "taken"), [(-1, False), (0, False), (24, False), (1 << 40, True)])
def test_what_the_leader_reports_is_the_bound(world: Jbod, bound: int, taken: bool) -> None:
    """And nothing is believed of what lies above the high watermark: a cleaner does not come there."""
    rewrite(world, bound)
    add_a_replica(world)
    assert (log_of(world, 3).log_end_offset == 30) == taken
    assert log_of(world, 3).gaps_end <= 30


def rewrite(world: Jbod, bound: int) -> None:
    """Whoever leads tells broker 3 another bound."""
    step = world.nodes[THREE].step

    def lying(event, now):  # type: ignore[no-untyped-def]
        if isinstance(event, Answered) and isinstance(event.message, FetchResponse):
            rows = event.message.responses
            changed = tuple(
                type(topic)(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        type(row)(**{f: getattr(row, f) for f in row.__struct_fields__} | {"gaps_end": bound})
                        for row in topic.partitions
                    ),
                )
                for topic in rows
            )
            event = Answered(event.token, FetchResponse(session_id=event.message.session_id, responses=changed))
        return step(event, now)

    world.nodes[THREE].step = lying  # type: ignore[method-assign]


def test_a_log_with_old_gaps_moves_to_another_directory(world: Jbod) -> None:
    kept = stored(world, 1)
    world.nodes[NodeId(1)].futures.alter(AT_NAME, "/d1", world.now)
    world.run(1_000)
    assert world.path(1) == "/d1"
    assert stored(world, 1) == kept


def test_consumers_do_not_see_it(world: Jbod) -> None:
    assert world.consume(1, 0)().gaps_end == -1


def test_a_log_that_is_compacted_again_is_cleaned_from_its_beginning(world: Jbod) -> None:
    add_a_replica(world)
    configure(world, **COMPACT)
    assert log_of(world, 3).cleaned_to == 0
    world.produce(1, batch=keyed(("k0", "new"), timestamp=world.now))
    world.run(1_000)
    assert log_of(world, 3).gaps.may_precede(1_000)
    assert world.nodes[THREE].host.partitions.named(*AT_NAME) is world.nodes[THREE].host.partitions.find(AT)
