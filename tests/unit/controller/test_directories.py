"""Directories of brokers that live on (KIP-858): who tells what, and who leads then."""

from typing import Any

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition, Uuid
from strandline.metadata.image import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from strandline.wire.messages.brokers.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest

E = ErrorCode


def directory(node: int, number: int) -> Uuid:
    return Uuid(bytes([node, number] * 8))


class Jbod(Cluster):
    """Every broker has two log directories."""

    def registration(self, node: int, life: int = 1, previous: int = -1, **fields: Any) -> Any:
        dirs = (directory(node, 0), directory(node, 1))
        return super().registration(node, life, previous, **{"log_dirs": dirs, **fields})

    def assign(self, node: int, where: Uuid, *ats: TopicIdPartition, **fields: Any) -> list[int]:
        topics = tuple(
            TopicData(topic_id=at.topic_id, partitions=(PartitionData(partition_index=at.partition),)) for at in ats
        )
        values = {"broker_id": node, "broker_epoch": self.epochs[node]} | fields
        request = AssignReplicasToDirsRequest(directories=(DirectoryData(id=where, topics=topics),), **values)
        answer = self.ask(request)
        if answer.error_code:
            return [answer.error_code]
        (row,) = answer.directories
        assert row.id == where
        return [p.error_code for t in row.topics for p in t.partitions]

    def lose(self, node: int, *lost: Uuid, want_shut_down: bool = False) -> Any:
        request = BrokerHeartbeatRequest(
            broker_id=node,
            broker_epoch=self.epochs[node],
            current_metadata_offset=self.log.next_offset - 1,
            offline_log_dirs=lost,
            want_shut_down=want_shut_down,
        )
        return self.ask(request, version=1, connection=self.connection(node))

    def leads(self, index: int = 0) -> tuple[int, tuple[int, ...]]:
        found = self.partition("t", index)
        return found.leader, found.isr


@pytest.fixture
def jbod() -> Jbod:
    return ready(elr=True)


@pytest.fixture
def without_elr() -> Jbod:
    return ready(elr=False)


def ready(*, elr: bool) -> Jbod:
    """t-0 and t-1 are led by broker 1, from its first and its second directory."""
    made = Jbod(brokers=3, elr=elr)
    made.create("t", (1, 2, 3), (1, 2, 3))
    assert made.partition("t").directories == (UNASSIGNED_DIRECTORY,) * 3
    for index in (0, 1):
        assert made.assign(1, directory(1, index), made.at("t", index)) == [E.NONE]
    return made


def test_a_broker_says_where_its_replica_lies(jbod: Jbod) -> None:
    before = jbod.partition("t")
    assert before.directories == (directory(1, 0), UNASSIGNED_DIRECTORY, UNASSIGNED_DIRECTORY)
    assert jbod.assign(2, directory(2, 1), jbod.at("t")) == [E.NONE]
    after = jbod.partition("t")
    assert after.directories == (directory(1, 0), directory(2, 1), UNASSIGNED_DIRECTORY)
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch, before.partition_epoch + 1)
    assert (after.leader, after.isr) == (before.leader, before.isr)


def test_what_is_known_already_writes_nothing(jbod: Jbod) -> None:
    before = len(jbod.log.records)
    assert jbod.assign(1, directory(1, 0), jbod.at("t")) == [E.NONE]
    assert len(jbod.log.records) == before


def test_the_last_word_counts_within_a_request_too(jbod: Jbod) -> None:
    assert jbod.assign(1, directory(1, 1), jbod.at("t"), jbod.at("t")) == [E.NONE, E.NONE]
    assert jbod.partition("t").directories[0] == directory(1, 1)


@pytest.mark.parametrize(
    ("title", "at", "error"),
    [
        ("an unknown topic", TopicIdPartition(Uuid(b"x" * 16), 0), E.UNKNOWN_TOPIC_ID),
        ("an unknown partition", None, E.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_an_assignment_is_refused(jbod: Jbod, title: str, at: TopicIdPartition | None, error: ErrorCode) -> None:
    before = len(jbod.log.records)
    assert jbod.assign(1, directory(1, 1), at or jbod.at("t", 9), jbod.at("t")) == [error, E.NONE], title
    assert len(jbod.log.records) == before + 1, "the other row is done all the same"


def test_a_broker_that_is_not_a_replica_reports_nothing(jbod: Jbod) -> None:
    jbod.create("u", (1, 2))
    assert jbod.assign(3, directory(3, 0), jbod.at("u")) == [E.NOT_LEADER_OR_FOLLOWER]


def test_an_earlier_incarnation_assigns_nothing(jbod: Jbod) -> None:
    stale = jbod.epochs[1] - 1
    assert jbod.assign(1, directory(1, 1), jbod.at("t"), broker_epoch=stale) == [E.STALE_BROKER_EPOCH]
    assert jbod.partition("t").directories[0] == directory(1, 0)


def test_a_lost_directory_moves_its_leaders_and_no_others(jbod: Jbod) -> None:
    answer = jbod.lose(1, directory(1, 0))
    assert (answer.error_code, answer.is_fenced) == (E.NONE, False)
    assert jbod.leads(0) == (2, (2, 3))
    assert jbod.leads(1) == (1, (1, 2, 3))
    assert jbod.image.brokers[NodeId(1)].log_dirs == (directory(1, 1),)
    before = len(jbod.log.records)
    jbod.lose(1, directory(1, 0))
    assert len(jbod.log.records) == before, "it is told with every heartbeat, and done once"


def test_a_replica_in_a_lost_directory_may_not_come_back_into_the_isr(jbod: Jbod) -> None:
    jbod.lose(1, directory(1, 0))
    assert jbod.alter("t", (2, 3, 1)).error_code == E.INELIGIBLE_REPLICA


def test_it_is_back_with_the_next_incarnation_that_has_the_directory(without_elr: Jbod) -> None:
    jbod = without_elr
    jbod.lose(1, directory(1, 0))
    jbod.wait(10_000)
    for node in (1, 2, 3):
        jbod.join(node)
    assert jbod.alter("t", (jbod.leads()[0], 1), index=0).error_code == E.NONE


def test_the_last_of_an_isr_stays_in_it_and_leads_no_longer(without_elr: Jbod) -> None:
    """What it has may be all there is; nobody else leads, and it leads again only with its directory."""
    jbod = without_elr
    assert jbod.alter("t", (1,)).error_code == E.NONE
    jbod.lose(1, directory(1, 0))
    assert jbod.leads() == (NOBODY, (1,))
    jbod.wait(10_000)
    jbod.register(1)
    assert not jbod.beat(1).is_fenced
    assert jbod.leads() == (1, (1,))


def test_arrival_without_the_directory_elects_nobody(without_elr: Jbod) -> None:
    jbod = without_elr
    assert jbod.alter("t", (1,)).error_code == E.NONE
    jbod.wait(10_000)
    answer = jbod.ask(jbod.registration(1, 2, log_dirs=(directory(1, 1),)), version=4, connection=2001)
    assert answer.error_code == E.NONE
    jbod.lives[1], jbod.epochs[1] = 2, answer.broker_epoch
    assert not jbod.beat(1).is_fenced
    assert jbod.leads() == (NOBODY, (1,)), "its log is on a disk that is not there"


def test_a_lost_directory_of_an_incarnation_that_registers_again(jbod: Jbod) -> None:
    answer = jbod.ask(jbod.registration(1, 1, log_dirs=(directory(1, 1),)), version=4, connection=1001)
    assert answer.broker_epoch == jbod.epochs[1]
    assert jbod.leads(0) == (2, (2, 3))
    assert jbod.leads(1) == (1, (1, 2, 3))


def test_a_registration_that_is_late_brings_no_directory_back(jbod: Jbod) -> None:
    jbod.lose(1, directory(1, 0))
    answer = jbod.ask(jbod.registration(1, 1), version=4, connection=1001)
    assert answer.broker_epoch == jbod.epochs[1]
    assert jbod.image.brokers[NodeId(1)].log_dirs == (directory(1, 1),)


@pytest.mark.parametrize("where", [LOST_DIRECTORY, directory(1, 9)], ids=["lost", "not registered"])
def test_a_replica_assigned_to_a_directory_that_is_offline_is_offline(jbod: Jbod, where: Uuid) -> None:
    """T9: by the one builder, so that leader, ISR and directory change together."""
    assert jbod.assign(1, where, jbod.at("t")) == [E.NONE]
    assert jbod.leads() == (2, (2, 3))
    assert jbod.partition("t").directories[0] == where


def test_the_last_replica_leads_once_it_is_found_in_a_live_directory(without_elr: Jbod) -> None:
    jbod = without_elr
    assert jbod.alter("t", (1,)).error_code == E.NONE
    assert jbod.assign(1, LOST_DIRECTORY, jbod.at("t")) == [E.NONE]
    assert jbod.leads() == (NOBODY, (1,))
    assert jbod.assign(1, directory(1, 1), jbod.at("t")) == [E.NONE]
    assert jbod.leads() == (1, (1,))


def test_a_broker_that_has_lost_all_is_fenced_and_stays_so(jbod: Jbod) -> None:
    assert jbod.lose(1, directory(1, 0), directory(1, 1)).is_fenced
    assert [jbod.leads(index)[0] for index in (0, 1)] == [2, 2]
    assert jbod.lose(1, directory(1, 0), directory(1, 1)).is_fenced


def test_a_shutdown_waits_for_a_loss_to_be_reported(jbod: Jbod) -> None:
    assert not jbod.lose(1, directory(1, 0), want_shut_down=True).should_shut_down
    assert jbod.leads(0) == (2, (2, 3))
    jbod.beat(1, want_shut_down=True)
    assert jbod.beat(1, want_shut_down=True).should_shut_down
