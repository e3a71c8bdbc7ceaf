"""The laws of transactions fire: what they forbid is done to a running cluster, by hand."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sim.play import SETTINGS, Play

from strandline.base.ids import OFFSETS_TOPIC, TopicIdPartition
from strandline.coordination.partitioning import partition_for
from strandline.group.offsets.pending import Pending
from strandline.group.serving import transactional
from strandline.log.log import Log
from strandline.replica.hosting.hosted import Hosted
from strandline.sim.clients.committer import Coordinated
from strandline.sim.clients.transactions.transformer import Transformer
from strandline.sim.laws.clients.replayed import Replayed
from strandline.sim.laws.logs.compacted import Committed
from strandline.sim.runs.calm import calm, material_of
from strandline.sim.runs.transactional import EAGER, HASTY
from strandline.sim.workloads.transacting import Copying
from strandline.sim.workloads.workload import Setting
from strandline.sim.world.options import Options
from strandline.sim.world.violation import Violation

Harm = Callable[[Play, pytest.MonkeyPatch], None]


def copying() -> tuple[Play, Copying]:
    play = Play(options=Options(settings=SETTINGS | EAGER | HASTY))
    workload = Copying(play.scene, play.admin, Setting(2, 3, "1048576", 30))
    workload.setup()
    play.run(300)
    workload.start()
    for client in workload.clients():
        play.scene.enter(client)
    play.run(2500)
    return play, workload


def of_group(play: Play) -> tuple[TopicIdPartition, Hosted]:
    """The group's partition, on its coordinator."""
    topic = play.world.laws.metadata.image.topic_named(OFFSETS_TOPIC)
    assert topic is not None
    index = partition_for(Copying.GROUP, len(topic.partitions))
    node = play.leader(OFFSETS_TOPIC, index).node
    assert node is not None and node.broker is not None
    at = TopicIdPartition(topic.topic_id, index)
    hosted = node.broker.replicas.host.partitions.find(at)
    assert hosted is not None
    return at, hosted


def all_is_stable(play: Play, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "last_stable_offset", lambda self, high_watermark: high_watermark)


def stable_offset_was_higher(play: Play, patch: pytest.MonkeyPatch) -> None:
    laws = play.world.laws.transactions
    for where, (epoch, stable) in laws.stable.items():
        laws.stable[where] = epoch, stable + 1000


def decisions_are_unknown(play: Play, patch: pytest.MonkeyPatch) -> None:
    play.world.laws.transactions.decided = Uncounted()


def ends_are_unknown(play: Play, patch: pytest.MonkeyPatch) -> None:
    play.world.laws.transactions.ends = Nothing()


class Nothing(set[Any]):
    def add(self, element: Any) -> None:
        pass


class Uncounted(Counter[Any]):
    def __setitem__(self, key: Any, count: int) -> None:
        pass


def commits_are_not_in_the_log(play: Play, patch: pytest.MonkeyPatch) -> None:
    take = Replayed.take

    def forget(self: Replayed, *rest: Any) -> None:
        take(self, *rest)
        self.written.clear()

    patch.setattr(Replayed, "take", forget)


def no_offset_is_unstable(play: Play, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pending, "is_unstable", lambda self, key: False)
    play.scene.enter(Curious(play.scene, "curious", Copying.GROUP, "given"))


class Curious(Coordinated):
    """It asks for stable offsets all the time."""

    def live(self) -> Any:
        while not self.is_stopped:
            for partition in range(3):
                yield from self.fetch(partition, is_stable=True)
                yield 5


def generations_do_not_fence(play: Play, patch: pytest.MonkeyPatch) -> None:
    """Each member commits as one of the generation before."""
    wanted = transactional.why_not_commit

    def why_not(shard: Any, request: Any, known: Any) -> Any:
        return wanted(shard, replace(request, generation_id=-1, member_id="", group_instance_id=None), known)

    patch.setattr(transactional, "why_not_commit", why_not)
    commit = Transformer.commit_place

    def commit_late(self: Transformer, *where: int) -> Any:
        self.member.generation -= 1
        error = yield from commit(self, *where)
        self.member.generation += 1
        return error

    patch.setattr(Transformer, "commit_place", commit_late)


@pytest.mark.parametrize(
    ("harm", "law"),
    [
        (all_is_stable, "the last stable offset of .* is"),
        (stable_offset_was_higher, "the last stable offset of .* fell from"),
        (decisions_are_unknown, "its coordinator has decided that 0 times"),
        (ends_are_unknown, "and no such decision is committed"),
        (commits_are_not_in_the_log, "and it is not committed there"),
        (no_offset_is_unstable, "is the stable offset of"),
        (generations_do_not_fence, "though the group is in generation"),
    ],
)
def test_a_broken_law_of_transactions_is_noticed(harm: Harm, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    play, _ = copying()
    harm(play, monkeypatch)
    with pytest.raises(Violation, match=law):
        play.run(8000)


def test_a_transaction_that_stays_open_is_noticed() -> None:
    play, workload = copying()
    for client in workload.writers:
        client.is_stopped = True
    play.until("nothing is open", lambda: play.world.laws.transactions.why_open() is None)
    of_group(play)[1].log.transactions.open[4711] = 1
    assert "4711" in str(play.world.laws.transactions.why_open())


def test_what_a_cleaner_may_take_of_a_transaction_follows_from_its_end() -> None:
    """As the oracle of compacted logs sees it: an aborted offset takes no place, an open one stays."""
    play, _ = copying()
    at, hosted = of_group(play)
    truth = play.world.laws.partitions.truths[at]

    def last_of(**changes: Any) -> dict[bytes, int]:
        oracle = Committed()
        if changes:
            end = oracle.end
            oracle.end = lambda producer_id, marker: end(producer_id, replace(marker, **changes))  # type: ignore[method-assign]
        oracle.follow(truth)
        return oracle.last

    play.until("nothing is open there", lambda: not hosted.log.transactions.open)
    in_transactions = {key for key in last_of() if b"given" in key}
    assert in_transactions, "the group has committed something"
    assert not in_transactions & last_of(commits=False).keys()
    oracle = Committed()
    oracle.end = lambda *_: None  # type: ignore[method-assign]
    oracle.follow(truth)
    undecided = [offset for keys in oracle.open.values() for offset in keys]
    assert undecided and all(oracle.is_undecided(offset) for offset in undecided)


def test_a_record_that_was_copied_twice_or_not_at_all_is_noticed() -> None:
    """The position of the group in the end, and what stands in the topic."""
    play, workload = copying()
    calm(play.world, play.scene, play.admin, [play.workload, workload])
    operations, finals = play.world.history.operations, material_of(play.world, play.scene).finals
    assert workload.wrong(operations, finals) == []
    assert sum(workload.final_offsets.committed.values()) > 10
    partition = max(workload.final_offsets.committed, key=lambda one: workload.final_offsets.committed[one])
    workload.final_offsets.committed[partition] = 1
    assert {anomaly.name for anomaly in workload.wrong(operations, finals)} == {"offset-without-output"}
