"""A record that cannot be applied is told before it is applied: what else the log may hold in a batch that is whole."""

from dataclasses import dataclass, field
from typing import Any

from tests.rows import each
from tests.unit.metadata.test_image import T, acl, broker, change, config, image_of, partition, quota, scram, topic

from strandline.base.ids import METADATA_TOPIC_ID, OFFSET_MAX, ZERO_UUID, Uuid
from strandline.metadata import records as r
from strandline.metadata.features import METADATA_LEVEL, METADATA_VERSION
from strandline.metadata.fitting import DESCRIBED_MAX, EPOCH_END, WHY_UNFIT, described, why_unfit
from strandline.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, Image
from strandline.metadata.replay import APPLY

U = Uuid(b"u" * 16)


def registered(**fields: Any) -> r.BrokerRegistrationChangeRecord:
    return r.BrokerRegistrationChangeRecord(**{"broker_id": 1, "broker_epoch": 40, **fields})


def known() -> Image:
    return image_of(topic(), partition(), broker(), r.ProducerIdsRecord(next_producer_id=2000), acl(), scram("alice"))


@dataclass
class Row:
    record: Any
    why: str
    beside: list[Any] = field(default_factory=list)  # of the same kind, and can be applied


ROWS = [
    Row(topic(), "another topic has this id", [topic("u", U)]),
    Row(topic("u", ZERO_UUID), "another topic has this id"),
    Row(topic("u", METADATA_TOPIC_ID), "another topic has this id"),
    Row(topic("t", U), "a topic of this name"),
    Row(topic("../u", U), "ASCII alphanumerics"),
    Row(topic("", U), "empty string"),
    Row(partition(topic_id=U), "no such topic", [partition(partition_id=1)]),
    Row(partition(partition_id=-1), "no partition has this number"),
    Row(partition(partition_id=1, replicas=()), "replicas []"),
    Row(partition(partition_id=1, replicas=(1, 1, 2)), "replicas [1, 1, 2]"),
    Row(partition(partition_id=1, replicas=(1, 2, -3)), "replicas [1, 2, -3]"),
    Row(partition(partition_id=1, directories=(U,)), "in 1 directories", [partition(directories=(T, U, ZERO_UUID))]),
    Row(partition(partition_id=1, isr=(1, 4)), "ISR [1, 4]"),
    Row(partition(partition_id=1, isr=(1, 1)), "ISR [1, 1]"),
    Row(
        partition(partition_id=1, eligible_leader_replicas=(2,)), "ELR [2]", [partition(eligible_leader_replicas=(3,))]
    ),
    Row(partition(partition_id=1, leader=3), "leader 3 is not in the ISR", [partition(leader=-1, isr=())]),
    Row(partition(partition_id=1, leader=-2), "leader -2 is not in the ISR"),
    Row(partition(leader=-1, last_known_leader=4), "the last leader 4", [partition(leader=-1, last_known_leader=3)]),
    Row(partition(partition_id=1, adding_replicas=(4,)), "[4] are added", [partition(adding_replicas=(3,))]),
    Row(partition(partition_id=1, leader_recovery_state=2), "recovery state 2", [partition(leader_recovery_state=1)]),
    Row(partition(partition_id=1, leader_epoch=-1), "leader epoch -1", [partition(leader_epoch=0)]),
    Row(partition(partition_id=1, leader_epoch=EPOCH_END), "no partition comes there by counting"),
    Row(
        partition(partition_id=1, partition_epoch=EPOCH_END), "comes there", [partition(partition_epoch=EPOCH_END - 1)]
    ),
    Row(r.PartitionChangeRecord(partition_id=1, topic_id=T, isr=(1,)), "no such partition", [change(isr=(1,))]),
    Row(r.PartitionChangeRecord(partition_id=0, topic_id=U, isr=(1,)), "no such partition"),
    Row(change(isr=(1, 4)), "ISR [1, 4]", [change(isr=(1, 3))]),
    Row(change(isr=(2, 3)), "leader 1 is not in the ISR", [change(isr=(2, 3), leader=2)]),
    Row(change(replicas=(2, 3)), "ISR [1, 2]", [change(replicas=(2, 3), isr=(2,), leader=2)]),
    Row(change(directories=(U,)), "in 1 directories", [change(directories=(T, U, ZERO_UUID))]),
    Row(change(eligible_leader_replicas=(1,)), "ELR [1]", [change(eligible_leader_replicas=(3,))]),
    Row(r.RemoveTopicRecord(topic_id=U), "no such topic", [r.RemoveTopicRecord(topic_id=T)]),
    Row(config(TOPIC_RESOURCE, "t", "retention.ms", "soon"), "'soon' is not a valid value of retention.ms"),
    Row(
        config(BROKER_RESOURCE, "", "log.retention.ms", "9" * 30),
        "is not a valid value of log.retention.ms",
        [
            config(BROKER_RESOURCE, "", "log.retention.ms", "9"),
            config(BROKER_RESOURCE, "1", "log.retention.ms", None),
            config(BROKER_RESOURCE, "1", "of.another.program", "soon"),
            config(100, "1", "log.retention.ms", "soon"),
        ],
    ),
    Row(
        config(GROUP_RESOURCE, "g", "consumer.session.timeout.ms", "soon"),
        "'soon' is not a valid value of consumer.session.timeout.ms",
        [config(GROUP_RESOURCE, "g", "share.session.timeout.ms", "soon")],
    ),
    Row(broker(broker_id=-1), "no broker -1 registers", [broker(broker_epoch=41)]),
    Row(broker(broker_epoch=-1), "with epoch -1"),
    Row(broker(broker_epoch=OFFSET_MAX + 1), f"with epoch {OFFSET_MAX + 1}"),
    Row(
        r.UnregisterBrokerRecord(broker_id=1, broker_epoch=39),
        "no broker 1 is registered with epoch 39",
        [r.UnregisterBrokerRecord(broker_id=1, broker_epoch=40)],
    ),
    Row(r.UnregisterBrokerRecord(broker_id=2, broker_epoch=40), "no broker 2 is registered"),
    Row(registered(broker_epoch=41), "no broker 1 is registered with epoch 41", [registered(fenced=-1)]),
    Row(registered(broker_id=2), "no broker 2 is registered"),
    Row(registered(fenced=2), "fenced 2", [registered(fenced=1)]),
    Row(registered(in_controlled_shutdown=-1), "in controlled shutdown -1", [registered(in_controlled_shutdown=1)]),
    Row(
        r.FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_LEVEL + 1),
        f"this program knows levels up to {METADATA_LEVEL}",
        [
            r.FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_LEVEL),
            r.FeatureLevelRecord(name="of.another.program", feature_level=9),
        ],
    ),
    Row(r.FeatureLevelRecord(name="of.another.program", feature_level=-1), "level -1"),
    Row(r.ClearElrRecord(topic_name="u"), "no such topic", [r.ClearElrRecord(topic_name="t"), r.ClearElrRecord()]),
    Row(r.ProducerIdsRecord(next_producer_id=1999), "below 2000", [r.ProducerIdsRecord(next_producer_id=2000)]),
    Row(acl(host="h"), "another ACL has this id", [acl(U, host="h")]),
    Row(acl(ZERO_UUID, host="h"), "another ACL has this id"),
    Row(acl(U), "there is such an ACL", [acl(U, permission_type=3)]),
    Row(acl(U, resource_type=8), "Invalid resourceType UNKNOWN", [acl(U, resource_type=7)]),
    Row(acl(U, pattern_type=2), "Invalid patternType MATCH", [acl(U, pattern_type=3)]),
    Row(acl(U, operation=16), "Invalid operation UNKNOWN", [acl(U, operation=15)]),
    Row(acl(U, permission_type=1), "Invalid permissionType ANY"),
    Row(acl(U, principal="a"), "Could not parse principal from `a`", [acl(U, principal="Group:")]),
    Row(r.RemoveAccessControlEntryRecord(id=U), "there is no such ACL", [r.RemoveAccessControlEntryRecord(id=T)]),
    Row(scram(""), "no user has a credential", [scram("bob"), scram("alice", mechanism=2)]),
    Row(scram("bob", mechanism=3), "of mechanism 3"),
    Row(scram("bob", iterations=0), "with 0 iterations"),
    Row(
        r.RemoveUserScramCredentialRecord(name="alice", mechanism=2),
        "no such credential",
        [r.RemoveUserScramCredentialRecord(name="alice", mechanism=1)],
    ),
    Row(quota(1.0), "[] are not the types", [quota(1.0, ("user", None)), quota(1.0, ("of.another.program", "x"))]),
    Row(quota(1.0, ("user", "a"), ("user", "b")), "are not the types"),
    Row(quota(0.0, ("user", "a")), "is not a quota", [quota(None, ("user", "a"))]),
    Row(quota(float("nan"), ("user", "a")), "nan is not a quota"),
    Row(r.EndTransactionRecord(), "no transaction has begun", [r.BeginTransactionRecord(), r.NoOpRecord()]),
    Row(r.AbortTransactionRecord(), "no transaction has begun"),
    Row(r.RegisterControllerRecord(), "does not know what it means"),
    Row(object(), "does not know what it means"),
]


@each("row", ROWS, ids=lambda row: row.why)
def test_what_does_not_fit_is_reported_with_the_reason_and_what_is_like_it_and_fits_is_applied(row: Row) -> None:
    why = why_unfit(known(), row.record)
    assert why is not None
    assert row.why in why
    for record in row.beside:
        image = known()
        assert why_unfit(image, record) is None
        image.apply(record)
        image.check()


def test_every_kind_that_is_applied_is_looked_at_first() -> None:
    assert WHY_UNFIT.keys() == APPLY.keys()


def test_one_change_less_than_the_last_epoch_can_be_made() -> None:
    """A partition whose epochs are used up takes no change; one before that takes it."""
    image = image_of(topic(), partition(leader_epoch=EPOCH_END - 2, partition_epoch=EPOCH_END - 2))
    assert why_unfit(image, change(leader=2)) is None
    image.apply(change(leader=2))
    assert why_unfit(image, change(isr=(2,))) is not None


def test_an_operator_learns_what_is_particular_to_a_record() -> None:
    assert (
        described(change(isr=(1,)))
        == "PartitionChangeRecord with partition_id 0, topic_id dHR0dHR0dHR0dHR0dHR0dA, isr (1,)"
    )
    assert described(r.NoOpRecord()) == "NoOpRecord"
    assert described(scram("alice")) == "UserScramCredentialRecord with name alice, mechanism 1, iterations 4096", (
        "keys are in no text"
    )
    assert len(described(topic("t" * 5000))) == DESCRIBED_MAX + 1
