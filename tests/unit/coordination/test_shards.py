"""Several partitions are loaded at once: in turns, with one bound for all of them."""

from collections.abc import Sequence

from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch, Uuid
from strandline.base.time import NEVER, Instant, after
from strandline.coordination.internal_log import Part, Reached, Replayed
from strandline.coordination.shards import COLD_AGAIN_MS, LOAD_AGAIN_MS, LOOK_BYTES, Shards
from strandline.metadata.image import Image
from strandline.metadata.records import PartitionRecord, TopicRecord

NOW = Instant(1_000)
TOPIC_ID = Uuid(b"of the topic, 16")


class Shard:
    def __init__(self, partition: int, leader_epoch: LeaderEpoch) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end = 0
        self.rest = 0  # to do when all is read

    def replay(self, batches: Sequence[Replayed]) -> None:
        pass

    def complete(self, limit: int, now: Instant) -> int:
        done = min(self.rest, limit)
        self.rest -= done
        return done


class Log:
    """Partitions of so many bytes, and a note of what is read: partition and bytes."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = dict(enumerate(sizes))
        self.damaged: set[int] = set()
        self.cold: set[int] = set()
        self.read: list[tuple[int, int]] = []

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None:
        return LeaderEpoch(0)

    def reader(self, topic: str, partition: int) -> "Reader":
        return Reader(self, partition)


class Reader:
    end = 0

    def __init__(self, log: Log, partition: int) -> None:
        self.log, self.partition = log, partition
        self.left = log.sizes[partition]

    def read(self, bytes_max: int, now: Instant) -> Part:
        if self.partition in self.log.damaged:
            return Part((), 0, Reached.DAMAGE)
        if self.partition in self.log.cold:
            return Part((), 0, Reached.COLD)
        size = min(self.left, bytes_max)
        self.left -= size
        self.log.read.append((self.partition, size))
        return Part((), size, Reached.MORE if self.left else Reached.END)


def led(log: Log, rest: int = 0) -> Shards[Shard]:
    def begin(partition: int, leader_epoch: LeaderEpoch) -> Shard:
        shard = Shard(partition, leader_epoch)
        shard.rest = rest
        return shard

    shards: Shards[Shard] = Shards("t", log, begin)  # type: ignore[arg-type]  # nothing is written
    image = Image()
    rows = [PartitionRecord(partition_id=p, topic_id=TOPIC_ID, replicas=(1,), isr=(1,), leader=1) for p in log.sizes]
    image.apply_all([TopicRecord(name="t", topic_id=TOPIC_ID), *rows])
    assert shards.is_touched(image, image.take_delta())
    shards.follow_leadership(NOW)
    shards.check()
    return shards


def finish(shards: Shards[Shard]) -> list[int]:
    """In which order the partitions are loaded."""
    order = list(shards.loaded)
    now = NOW
    while shards.loading:
        assert shards.next_load > now
        now = shards.next_load
        order += [shard.partition for shard in shards.go_on(now)]
        shards.check()
    assert shards.next_load == NEVER
    return order


def test_partitions_take_turns_and_a_small_one_does_not_wait_for_a_large_one() -> None:
    step = Shards.step_bytes
    log = Log(5 * step, 5 * step, 100)
    assert finish(led(log)) == [2, 0, 1]
    assert [partition for partition, _ in log.read[:6]] == [0, 1, 2, 0, 1, 0]


def test_a_step_reads_no_more_than_its_bound_however_many_partitions_there_are() -> None:
    small = Shards.step_bytes // 10
    log = Log(*[small] * 100)
    shards = led(log)
    assert 0 < sum(size for _, size in log.read) <= Shards.step_bytes
    assert sorted(finish(shards)) == list(range(100))
    assert len(shards.loaded) == 100


def test_empty_partitions_cost_something_too() -> None:
    shards = led(Log(*[0] * 1_000))
    assert len(shards.loaded) == Shards.step_bytes // LOOK_BYTES


def test_what_is_left_to_do_when_all_is_read_is_done_in_steps_too() -> None:
    shards = led(Log(10), rest=3 * Shards.step_bytes)
    steps, now = 0, NOW
    while shards.loading:
        assert shards.of("k") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        now = shards.next_load
        shards.go_on(now)
        steps += 1
    assert steps == 3


def test_a_damaged_partition_is_looked_at_again_later_and_keeps_no_other_one_waiting() -> None:
    log = Log(10, 10)
    log.damaged = {0}
    shards = led(log)
    assert list(shards.loaded) == [1]
    assert shards.next_load == NOW + LOAD_AGAIN_MS
    assert shards.go_on(Instant(NOW + 1)) == []
    log.damaged = set()
    assert [shard.partition for shard in shards.go_on(shards.next_load)] == [0]


def test_a_partition_that_is_not_cached_is_asked_again_in_a_moment() -> None:
    log = Log(100, 100)
    log.cold = {0}
    shards = led(log)
    assert list(shards.loaded) == [1]
    assert shards.next_load == after(NOW, COLD_AGAIN_MS)
    log.cold = set()
    assert finish(shards) == [1, 0]
