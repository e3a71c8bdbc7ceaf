"""Transactions in the metadata log (KIP-868): what a batch cannot hold counts at once, or never."""

from typing import Any

from tests.unit.metadata.test_image import AT, T, acl, broker, change, config, image_of, partition, quota, scram, topic

from strandline.base.ids import NodeId, Uuid
from strandline.metadata.fitting import why_unfit
from strandline.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from strandline.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
)

U = Uuid(b"u" * 16)
BEGIN, END, ABORT = BeginTransactionRecord(name="many topics"), EndTransactionRecord(), AbortTransactionRecord()
ONE_OF_EACH = [
    topic(),
    partition(),
    change(isr=(1, 2, 3)),
    broker(),
    config(TOPIC_RESOURCE, "t", "retention.ms", "1"),
    acl(),
    scram("alice"),
    quota(1.0, ("user", "alice")),
    ProducerIdsRecord(next_producer_id=1000),
    FeatureLevelRecord(name="metadata.version", feature_level=20),
]
NOT_STATE = ("delta", "own", "acls_version", "transaction")


def tables(image: Image) -> dict[str, Any]:
    return {name: value for name, value in vars(image).items() if name not in NOT_STATE}


def apply(image: Image, *records: Any) -> None:
    for record in records:
        assert why_unfit(image, record) is None
        image.apply(record)
        image.check()


def test_nothing_of_a_transaction_counts_before_its_end_and_then_all_of_it_does() -> None:
    image = image_of(topic("before", U))
    before = tables(image.copy())
    image.take_delta()
    apply(image, BEGIN)
    for record in ONE_OF_EACH:
        apply(image, record)
        assert tables(image) == before
        assert not image.delta
    apply(image, END)
    assert tables(image) == tables(image_of(topic("before", U), *ONE_OF_EACH))
    assert image.transaction is None
    apply(image, change(leader=2))
    assert image.topics[T].partitions[0].leader == 2, "the next record counts at once"


def test_nothing_of_an_aborted_transaction_ever_counts() -> None:
    image = image_of(*ONE_OF_EACH)
    apply(image, BEGIN, change(isr=(1,)), topic("u", U), partition(topic_id=U), RemoveTopicRecord(topic_id=T), ABORT)
    assert tables(image) == tables(image_of(*ONE_OF_EACH))
    apply(image, BEGIN, topic("v", U), END)
    assert sorted(image.topic_ids) == ["t", "v"]


def test_a_record_fits_by_what_its_transaction_has_changed_before_it() -> None:
    image = image_of(topic("t", U))
    assert why_unfit(image, topic("t", T)) is not None
    apply(image, BEGIN, RemoveTopicRecord(topic_id=U))
    assert why_unfit(image, RemoveTopicRecord(topic_id=U)) is not None, "it is gone there"
    apply(image, topic("t", T), partition(), change(isr=(1,)))
    assert why_unfit(image, PartitionChangeRecord(partition_id=1, topic_id=T)) is not None
    assert why_unfit(image, BEGIN) == "the transaction before it has not ended"
    apply(image, END)
    assert image.topic_ids == {"t": T}


def test_who_follows_the_image_finds_each_change_with_its_value_before() -> None:
    image = image_of(topic(), partition(), broker())
    image.take_delta()
    old = image.partition(AT)
    apply(image, change(isr=(1, 3)), config(BROKER_RESOURCE, "1", "a", "b"), topic("kept", Uuid(b"k" * 16)))
    apply(image, BEGIN, change(isr=(1,)), RemoveTopicRecord(topic_id=T), topic("u", U))
    apply(image, broker(broker_epoch=41), config(TOPIC_RESOURCE, "u", "a", "b"), END)
    delta = image.take_delta()
    assert delta.partitions == {AT: old}, "as it was before the first change, which is not in the transaction"
    assert {topic_id: before is None for topic_id, before in delta.topics.items()} == {
        T: False,
        U: True,
        Uuid(b"k" * 16): True,
    }
    first = delta.brokers[NodeId(1)]
    assert first is not None and first.epoch == 40
    assert delta.configs.keys() == {(BROKER_RESOURCE, "1"), (TOPIC_RESOURCE, "u")}
    assert not delta.reloaded


def test_a_copy_has_the_open_transaction_too_and_each_ends_alone() -> None:
    image = image_of(BEGIN, topic(), partition())
    twin = image.copy()
    apply(image, ABORT)
    assert not image.topics
    apply(twin, change(isr=(1,)), END)
    assert twin.topics[T].partitions[0].isr == (1,)
    assert twin.take_delta().reloaded, "part of what has changed is in the other one's delta"


def test_acls_of_a_transaction_have_a_later_version_than_any_before() -> None:
    image = image_of(BEGIN, acl())
    image.take_place_of(image_of(acl(U)))
    image.take_place_of(image)
    before = image.acls_version
    apply(image, END)
    assert image.acls_version > before
    assert len(image.acls) == 1
