"""The role, the order of answers, failover, and the periodic work."""

from random import Random
from typing import Any

import pytest
from tests.rows import each
from tests.unit.controller.cluster import CALLER, START, Cluster, Log

from strandline.base.effects import Failure, Probe, Received, Reply, ReplyTo, Report
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.time import NEVER, Instant
from strandline.controller.basis import ControllerConfig
from strandline.controller.controller import Controller
from strandline.controller.refusals import REFUSALS
from strandline.metadata.image import Image
from strandline.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from strandline.metadata.strategy import UNCLEAN_KEY
from strandline.wire.messages.brokers.allocate_producer_ids import AllocateProducerIdsRequest
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest
from strandline.wire.messages.cluster import alter_configs
from strandline.wire.messages.cluster.alter_configs import AlterConfigsRequest
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest, EntryData
from strandline.wire.messages.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from strandline.wire.messages.security.create_acls import AclCreation, CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState

E = ErrorCode


def creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=(CreatableTopic(name=name, num_partitions=1, replication_factor=1),))


def asking(kind: type) -> Any:
    """A request that names something, so that its refusal has where to say so."""
    rows = {
        CreateAclsRequest: CreateAclsRequest(creations=(AclCreation(resource_name="t"),)),
        DeleteAclsRequest: DeleteAclsRequest(filters=(DeleteAclsFilter(),)),
        AlterClientQuotasRequest: AlterClientQuotasRequest(entries=(EntryData(),)),
        AlterUserScramCredentialsRequest: AlterUserScramCredentialsRequest(
            deletions=(ScramCredentialDeletion(name="u"),)
        ),
        CreateTopicsRequest: creation("t"),
        DeleteTopicsRequest: DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),)),
        CreatePartitionsRequest: CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=2),)),
        AlterConfigsRequest: AlterConfigsRequest(
            resources=(alter_configs.AlterConfigsResource(resource_type=2, resource_name="t"),)
        ),
        IncrementalAlterConfigsRequest: IncrementalAlterConfigsRequest(
            resources=(AlterConfigsResource(resource_type=2, resource_name="t"),)
        ),
    }
    return rows[kind] if kind in rows else kind()


def codes(response: Any) -> set[int]:
    """Every error code in a response."""
    found: set[int] = set()
    for field in response.__struct_fields__:
        value = getattr(response, field)
        if field == "error_code":
            found.add(value)
        elif isinstance(value, tuple):
            for entry in value:
                found |= codes(entry)
    return found


@each("kind", list(REFUSALS), ids=lambda kind: kind.__name__)
def test_a_node_that_does_not_lead_refuses_everything(kind: type) -> None:
    controller = Controller(NodeId(1), ControllerConfig(), {}, Random(1), Log())
    to = ReplyTo(1, 0, 0, 0, 0)
    effects = controller.step(Received(to, CALLER, asking(kind)), START)
    assert len(effects) == 1 and isinstance(effects[0], Reply) and effects[0].to == to
    assert codes(effects[0].message) == {E.NOT_CONTROLLER}
    assert controller.deadline() == NEVER
    assert controller.expire(START) == []
    controller.check()


BEGINNING = {"metadata.version": 30, "transaction.version": 2, "group.version": 1}


@pytest.mark.parametrize(
    ("elr", "features"),
    [
        (True, {**BEGINNING, "eligible.leader.replicas.version": 1}),
        (False, BEGINNING),
    ],
)
def test_the_first_controller_writes_what_a_new_cluster_begins_with(elr: bool, features: dict[str, int]) -> None:
    cluster = Cluster(elr=elr)
    assert cluster.image.features == features
    before = len(cluster.log.records)
    cluster.controller.deactivate(cluster.now)
    cluster.controller.activate(cluster.image.copy(), 2, cluster.now)
    assert len(cluster.log.records) == before


def test_a_new_controller_aborts_the_transaction_that_the_one_before_left_open() -> None:
    """In one batch with what a new cluster begins with: that is the image without the transaction."""
    image = Image()
    image.apply_all([BeginTransactionRecord(), FeatureLevelRecord(name="metadata.version", feature_level=20)])
    log = Log()
    controller = Controller(NodeId(1), ControllerConfig(initial_features=BEGINNING), {}, Random(1), log)
    effects = controller.activate(image, 2, START)
    assert any(isinstance(one, Report) and "aborts the metadata transaction" in one.text for one in effects)
    assert [type(record) for record in log.batches[0]][:2] == [AbortTransactionRecord, FeatureLevelRecord]
    assert len(log.batches) == 1
    assert controller.image.features == BEGINNING
    assert controller.image.transaction is None


def test_an_answer_waits_for_its_commit() -> None:
    cluster = Cluster(brokers=1)
    cluster.holds_commits = True
    assert cluster.ask(creation("t")) is None
    asked = cluster.sequence
    last = cluster.log.next_offset - 1
    cluster.take(cluster.controller.committed(last, cluster.now))
    assert cluster.answer_to(asked) is None, "the last record lies at the high watermark, not below it"
    cluster.take(cluster.controller.committed(last + 1, cluster.now))
    assert cluster.answer_to(asked).topics[0].error_code == E.NONE


def test_a_refusal_waits_for_what_it_rests_on() -> None:
    """The topic exists only if the first request's records are committed."""
    cluster = Cluster(brokers=1)
    cluster.holds_commits = True
    assert cluster.ask(creation("t")) is None
    assert cluster.ask(creation("t")) is None
    cluster.commit()
    answers = [cluster.answer_to(cluster.sequence - 1), cluster.answer_to(cluster.sequence)]
    assert [a.topics[0].error_code for a in answers] == [E.NONE, E.TOPIC_ALREADY_EXISTS]


def test_a_refusal_with_nothing_pending_is_immediate() -> None:
    cluster = Cluster(brokers=1)
    cluster.holds_commits = True
    assert cluster.ask(creation("")).topics[0].error_code == E.INVALID_TOPIC_EXCEPTION


def test_lost_leadership_takes_back_what_was_not_committed() -> None:
    cluster = Cluster(brokers=1)
    cluster.holds_commits = True
    cluster.ask(creation("a"))
    first = cluster.sequence
    cluster.ask(creation("b"))
    effects = cluster.controller.deactivate(cluster.now)
    replies = [e for e in effects if isinstance(e, Reply)]
    assert [r.to.sequence for r in replies] == [first, first + 1]
    assert all(codes(r.message) == {E.NOT_CONTROLLER} for r in replies)
    assert cluster.controller.committed(1 << 40, cluster.now) == []
    cluster.controller.check()


def test_no_more_answers_wait_than_the_bound() -> None:
    cluster = Cluster(brokers=1)
    cluster.holds_commits = True
    for index in range(10_000):
        cluster.controller.step(Received(ReplyTo(1, index, 0, 0, 7), CALLER, creation("t")), cluster.now)
    written = len(cluster.log.records)
    (effect,) = cluster.controller.step(Received(ReplyTo(1, 10_000, 0, 0, 7), CALLER, creation("u")), cluster.now)
    assert isinstance(effect, Reply) and codes(effect.message) == {E.NOT_CONTROLLER}
    assert len(cluster.log.records) == written
    cluster.commit()
    assert cluster.controller.step(Received(ReplyTo(1, 10_001, 0, 0, 7), CALLER, creation("u")), cluster.now)


def failover(cluster: Cluster) -> list[Probe]:
    """Another controller takes over from what is in the log."""
    image = Image()
    image.apply_all(cluster.log.records)
    cluster.controller = Controller(NodeId(101), ControllerConfig(), {}, Random(2), cluster.log)
    cluster.take(cluster.controller.activate(image, 2, cluster.now))
    return cluster.probes()


def test_a_broker_that_died_with_the_old_controller_is_fenced() -> None:
    """T26: the new controller has never heard of it, and opens a session for it all the same."""
    cluster = Cluster(brokers=2)
    failover(cluster)
    cluster.wait(8_000)
    cluster.beat(2)
    cluster.wait(1_000)
    assert [cluster.image.brokers[NodeId(n)].fenced for n in (1, 2)] == [True, False]


def test_a_new_controller_looks_at_every_unfenced_broker_at_once() -> None:
    cluster = Cluster(brokers=3)
    cluster.fence(3)
    first = failover(cluster)
    assert [p.endpoint.host for p in first] == ["host1", "host2"]
    cluster.probed(first[0], Failure.REFUSED)
    cluster.probed(first[1], None)
    cluster.wait(50)
    second = cluster.probes()
    assert [p.endpoint.host for p in second] == ["host1", "host2"]  # until it is heard of, broker 2 stays suspect
    cluster.probed(second[0], Failure.REFUSED)
    cluster.probed(second[1], None)
    assert [cluster.image.brokers[NodeId(n)].fenced for n in (1, 2, 3)] == [True, False, True]


def wait_alive(cluster: Cluster, span_ms: int, *brokers: int) -> None:
    """Let time pass while these brokers say that they live."""
    end = Instant(cluster.now + span_ms)
    while cluster.now < end:
        cluster.wait(min(5_000, end - cluster.now))
        for node in brokers:
            cluster.beat(node)


def not_preferred(partitions: int, **settings: Any) -> Cluster:
    """Broker 1 is the preferred leader of all, and broker 2 leads them."""
    cluster = Cluster(brokers=2, **settings)
    cluster.create("t", *[(1, 2)] * partitions)
    cluster.fence(1)
    cluster.join(1)
    for index in range(partitions):
        cluster.alter("t", (1, 2), index=index)
    assert leaders(cluster) == [2] * partitions
    return cluster


def leaders(cluster: Cluster) -> list[int]:
    found = cluster.image.topic_named("t")
    assert found is not None
    return [partition.leader for partition in found.partitions.values()]


def test_leadership_returns_to_the_preferred_replica_in_time() -> None:
    cluster = not_preferred(1)
    wait_alive(cluster, START + 300_000 - cluster.now - 1, 1, 2)
    assert leaders(cluster) == [2]
    wait_alive(cluster, 1, 1, 2)
    assert leaders(cluster) == [1]


def test_leadership_does_not_return_by_itself_where_that_is_switched_off() -> None:
    cluster = not_preferred(1, is_leader_rebalance_enabled=False)
    wait_alive(cluster, 1_000_000, 1, 2)
    assert leaders(cluster) == [2]


def test_a_balancer_that_finds_more_than_it_elects_at_once_goes_on_soon() -> None:
    cluster = not_preferred(5, elections_per_check=2)
    wait_alive(cluster, START + 300_000 - cluster.now, 1, 2)
    assert sorted(leaders(cluster)) == [1, 1, 2, 2, 2]
    cluster.wait(10)
    assert sorted(leaders(cluster)) == [1, 1, 1, 1, 2]
    cluster.wait(10)
    assert leaders(cluster) == [1] * 5


def leaderless(partitions: int, **settings: Any) -> Cluster:
    """Broker 1 had everything, and is dead; broker 2 lives, and was out of sync."""
    cluster = Cluster(brokers=2, **settings)
    cluster.create("t", *[(1, 2)] * partitions)
    for index in range(partitions):
        cluster.alter("t", (1,), index=index)
    cluster.fence(1)
    assert leaders(cluster) == [-1] * partitions
    return cluster


@pytest.mark.parametrize("is_balanced", [True, False])
def test_partitions_without_a_leader_are_looked_at_in_a_span_of_their_own(is_balanced: bool) -> None:
    cluster = leaderless(2, unclean_election_check_ms=20_000, is_leader_rebalance_enabled=is_balanced)
    wait_alive(cluster, 100_000, 2)
    assert leaders(cluster) == [-1, -1], "nobody allows the loss"
    # As a record that came by another way than a request, after which the controller would look at once.
    cluster.controller.write([ConfigRecord(resource_type=2, resource_name="t", name=UNCLEAN_KEY, value="true")], START)
    wait_alive(cluster, 20_000, 2)
    assert leaders(cluster) == [2, 2]


def test_allowing_unclean_elections_elects_all_though_not_all_at_once() -> None:
    cluster = leaderless(5, elections_per_check=2)
    allowed = AlterableConfig(name=UNCLEAN_KEY, config_operation=0, value="true")
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(allowed,))
    cluster.ask(IncrementalAlterConfigsRequest(resources=(resource,)), version=1)
    assert sorted(leaders(cluster)) == [-1, -1, -1, 2, 2]
    cluster.wait(20)
    assert leaders(cluster) == [2] * 5


def test_producer_ids_are_handed_out_once() -> None:
    cluster = Cluster(brokers=2)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=cluster.epochs[1])
    blocks = [cluster.ask(request) for _ in range(2)]
    assert [(b.error_code, b.producer_id_start, b.producer_id_len) for b in blocks] == [(0, 0, 1000), (0, 1000, 1000)]
    failover(cluster)
    assert cluster.ask(request).producer_id_start == 2000
    stale = AllocateProducerIdsRequest(broker_id=1, broker_epoch=3)
    assert cluster.ask(stale).error_code == E.STALE_BROKER_EPOCH


def test_a_lying_epoch_changes_nothing() -> None:
    cluster = Cluster(brokers=1)
    before = len(cluster.log.records)
    assert cluster.ask(AlterPartitionRequest(broker_id=1, broker_epoch=1)).error_code == E.STALE_BROKER_EPOCH
    assert len(cluster.log.records) == before


def test_what_nobody_can_apply_is_not_written() -> None:
    """Whatever defect made it: this controller ends, and no node after it."""
    cluster = Cluster(brokers=1)
    before = list(cluster.log.records)
    with pytest.raises(AssertionError, match="level -1"):
        cluster.controller.write([NoOpRecord(), FeatureLevelRecord(name="f", feature_level=-1)], cluster.now)
    assert cluster.log.records == before
