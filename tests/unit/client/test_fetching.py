"""Fetches from a broker whose every answer is written down here: gaps, closer replicas, truncations, other topics."""

import struct
import time
from types import SimpleNamespace

import pytest
from tests.unit.client.partition import FIRST, SECOND, Partition, batch, empty, raw

from strandline.base.errors import ErrorCode
from strandline.base.ids import uuid_text
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import (
    CorruptRecords,
    KafkaError,
    LogTruncated,
    OffsetOutOfRange,
    TimedOut,
    TopicIdChanged,
    UnknownTopic,
)
from strandline.wire.batch import build
from strandline.wire.messages.records.fetch import AbortedTransaction, EpochEndOffset, PartitionData
from strandline.wire.record import all_records


def opened(broker: Partition, **options: str) -> Cluster:
    given = {f"kafka.{key.replace('_', '.')}": value for key, value in options.items()}
    servers = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", "kafka.retry.backoff.ms": "5"}
    return Cluster(ClientConfig.of({**servers, **given}))


def test_each_fetch_says_what_the_one_before_it_has_found() -> None:
    with Partition(batch(0, epoch=2), batch(1, epoch=3), batch(2)) as broker, opened(broker) as cluster:
        found = []
        for fetched in cluster.read("t", 0, 0, 3, leader_epoch=1, topic_id=uuid_text(FIRST)):
            found += [record.value for record in all_records(bytes(fetched.records))]
        assert found == [b"0", b"1", b"2"]
        said = [(row.fetch_offset, row.last_fetched_epoch, row.current_leader_epoch) for _, row, _ in broker.asked]
        assert said == [(0, 1, 4), (1, 2, 4), (2, 3, 4)]
        assert {topic.topic_id for topic, _, _ in broker.asked} == {FIRST}


def test_a_broker_that_knows_no_topic_ids_is_asked_by_name() -> None:
    with Partition(batch(0), fetch_version=12) as broker, opened(broker) as cluster:
        assert cluster.fetch("t", 0, 0).next_offset == 1
        assert broker.asked[0][0].topic == "t"


def test_offsets_that_a_cleaner_has_taken_are_passed_over() -> None:
    """Missed twice, and nothing at the end either: the log has no record there."""
    with Partition(batch(0), empty(10), empty(10), empty(10)) as broker, opened(broker) as cluster:
        assert [row.next_offset for row in cluster.read("t", 0, 0, 10)] == [1, 10]
        assert [row.fetch_offset for _, row, _ in broker.asked] == [0, 1, 1, 9]
        assert [request.max_wait_ms for _, _, request in broker.asked] == [500, 500, 0, 0]


def test_records_that_a_broker_holds_back_are_waited_for() -> None:
    """It has what lies at the end, so that an empty answer for an earlier offset is none of a gap."""
    rows = [batch(0), empty(10), empty(10), batch(9), empty(10), batch(1), batch(1), batch(9)]
    with Partition(*rows) as broker, opened(broker) as cluster:
        assert [row.next_offset for row in cluster.read("t", 0, 0, 10)] == [1, 2, 10]
        assert [row.fetch_offset for _, row, _ in broker.asked] == [0, 1, 1, 9, 1, 1, 1, 2]
    with Partition(batch(0), *[empty(10)] * 6, batch(9)) as broker, opened(broker) as cluster:
        broker.throttle_ms = 5
        assert [row.next_offset for row in cluster.read("t", 0, 0, 10)] == [1, 10]
        assert {row.fetch_offset for _, row, _ in broker.asked} == {0, 1}


def test_a_reader_of_committed_records_waits_for_the_last_stable_offset() -> None:
    open_transaction = PartitionData(high_watermark=10, last_stable_offset=1, records=b"")
    rows = [batch(0), open_transaction, open_transaction, open_transaction]
    with Partition(*rows) as broker, opened(broker, isolation_level="read_committed") as cluster:
        reading = cluster.read("t", 0, 0, 10, patience_ms=100)
        assert next(reading).next_offset == 1
        with pytest.raises(TimedOut, match="Cannot fetch record for offset 1 of t-0 in 100 milliseconds"):
            next(reading)
        assert broker.asked[0][2].isolation_level == 1


def test_aborted_transactions_are_reported() -> None:
    aborted = (AbortedTransaction(producer_id=7, first_offset=3),)
    row = PartitionData(high_watermark=5, last_stable_offset=5, aborted_transactions=aborted, records=b"")
    with Partition(row) as broker, opened(broker) as cluster:
        assert cluster.fetch("t", 0, 3).aborted == ((7, 3),)


def test_a_closer_replica_is_read_when_the_leader_names_one() -> None:
    closer = PartitionData(high_watermark=9, preferred_read_replica=2, records=b"")
    rows = [closer, batch(0), batch(1), ErrorCode.OFFSET_NOT_AVAILABLE, batch(2)]
    with Partition(*rows) as broker, opened(broker, client_rack="r") as cluster:
        assert [row.broker for row in cluster.read("t", 0, 0, 3)] == [2, 2, 1]
        assert {request.rack_id for _, _, request in broker.asked} == {"r"}


def test_what_a_closer_replica_lacks_is_asked_of_the_leader_before_it_is_called_lost() -> None:
    """It lags behind, and the leader would send us there again."""
    closer = PartitionData(high_watermark=9, preferred_read_replica=2, records=b"")
    diverging = PartitionData(diverging_epoch=EpochEndOffset(epoch=2, end_offset=0), records=b"")
    for refusal in (ErrorCode.OFFSET_OUT_OF_RANGE, diverging):
        with Partition(closer, refusal, batch(0), batch(1)) as broker, opened(broker, client_rack="r") as cluster:
            assert [row.broker for row in cluster.read("t", 0, 0, 2)] == [1, 1]
            assert [request.rack_id for _, _, request in broker.asked] == ["r", "r", "", ""]


def test_a_truncation_says_where_the_epoch_ends_now() -> None:
    row = PartitionData(diverging_epoch=EpochEndOffset(epoch=2, end_offset=7), records=b"")
    with Partition(row) as broker, opened(broker) as cluster, pytest.raises(LogTruncated) as caught:
        cluster.fetch("t", 0, 9, leader_epoch=3)
    assert (caught.value.offset, caught.value.diverging_epoch, caught.value.end_offset) == (9, 2, 7)


def test_an_offset_that_retention_has_taken_says_what_there_is() -> None:
    row = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=5, high_watermark=8, records=b"")
    with Partition(row) as broker, opened(broker) as cluster, pytest.raises(OffsetOutOfRange) as caught:
        cluster.fetch("t", 0, 1)
    assert (caught.value.log_start_offset, caught.value.high_watermark) == (5, 8)


def test_an_offset_that_is_gone_where_the_broker_does_not_say_what_there_is() -> None:
    """As Kafka's brokers do: they are asked for both edges."""
    with Partition(ErrorCode.OFFSET_OUT_OF_RANGE) as broker, opened(broker) as cluster:
        broker.answers[2] = broker.edges
        with pytest.raises(OffsetOutOfRange) as caught:
            cluster.fetch("t", 0, 1)
    assert (caught.value.log_start_offset, caught.value.high_watermark) == (5, 8)


def test_a_topic_of_another_id_in_mid_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told after a while: a broker that has not yet heard of the new topic would tell the old id."""
    monkeypatch.setattr("strandline.client.metadata.MISSING_PATIENCE_MS", 50)
    with Partition(batch(0), ErrorCode.UNKNOWN_TOPIC_ID) as broker, opened(broker) as cluster:
        reading = cluster.read("t", 0, 0, 9)
        next(reading)
        broker.topic_id = SECOND
        with pytest.raises(TopicIdChanged) as caught:
            next(reading)
        assert (caught.value.expected, caught.value.found) == (uuid_text(FIRST), uuid_text(SECOND))


def test_a_topic_that_is_gone_in_mid_read_is_missed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.client.metadata.MISSING_PATIENCE_MS", 50)
    with Partition(batch(0), *[ErrorCode.UNKNOWN_TOPIC_ID] * 50) as broker, opened(broker) as cluster:
        reading = cluster.read("t", 0, 0, 9)
        next(reading)
        broker.is_there = False
        with pytest.raises(UnknownTopic):
            next(reading)


def test_what_is_refused_for_good_is_reported_by_name() -> None:
    with Partition(ErrorCode.TOPIC_AUTHORIZATION_FAILED) as broker, opened(broker) as cluster:
        with pytest.raises(KafkaError, match="cannot fetch t-0 at offset 0: TOPIC_AUTHORIZATION_FAILED"):
            cluster.fetch("t", 0, 0)
        broker.rows = [batch(0)]
        assert cluster.fetch("t", 0, 0).next_offset == 1


def test_a_caller_who_takes_his_time_is_not_a_cluster_that_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark takes records as slowly as they are worked on."""
    passed = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0], sleep=time.sleep)
    monkeypatch.setattr("strandline.client.patience.time", clock)
    rows = [batch(0), ErrorCode.NOT_LEADER_OR_FOLLOWER, batch(1), ErrorCode.UNKNOWN_TOPIC_ID, batch(2)]
    with Partition(*rows) as broker, opened(broker) as cluster:
        for _ in cluster.read("t", 0, 0, 3, patience_ms=60_000):
            passed[0] += 600
        assert broker.rows == []


def test_a_read_that_is_given_up_leaves_nothing_under_way() -> None:
    with Partition(*[batch(i) for i in range(5)]) as broker, opened(broker) as cluster:
        reading = cluster.read("t", 0, 0, 5)
        next(reading)
        reading.close()
        broker.rows = [batch(0), batch(0)]  # one for the fetch that was under way, if it comes so late
        assert cluster.fetch("t", 0, 0).next_offset == 1


def message_v1(offset: int) -> bytes:
    """One message of format 1, without a key: CRC, magic, attributes, timestamp, key, value."""
    body = struct.pack(">IbbqiI", 0, 1, 0, 0, -1, 5) + b"hello"
    return struct.pack(">qi", offset, len(body)) + body


@pytest.mark.parametrize("count", [1, 10])
def test_messages_of_the_old_formats_are_no_gap(count: int) -> None:
    old = b"".join(message_v1(offset) for offset in range(count))
    with Partition(*[raw(old, count)] * 9) as broker, opened(broker) as cluster:
        with pytest.raises(CorruptRecords, match=r"t-0 at offset 0 .*formats 0 and 1 are not supported"):
            next(cluster.read("t", 0, 0, count))
        assert len(broker.asked) == 1


@pytest.mark.parametrize("length", [0, 48, 1 << 20, -1])
def test_a_batch_whose_length_is_damaged_is_no_gap(length: int) -> None:
    """What is whole before it is read. The first batch of an answer is always whole, however few bytes were asked."""
    first, damaged = build([(0, None, b"0", ())], leader_epoch=4), bytearray(build([(0, None, b"1", ())]))
    struct.pack_into(">qi", damaged, 0, 1, length)
    with Partition(raw(first + damaged, 2), *[raw(bytes(damaged), 2)] * 9) as broker, opened(broker) as cluster:
        reading = cluster.read("t", 0, 0, 2)
        assert next(reading).next_offset == 1
        with pytest.raises(CorruptRecords, match=r"t-0 at offset 1 .*damaged: no batch begins there"):
            next(reading)
        assert len(broker.asked) == 2


def test_a_batch_of_another_format_behind_a_whole_one_is_not_passed_over() -> None:
    """Its length is one that a batch might have: what stands where its end offset would be says nothing."""
    other = bytearray(build([(0, None, b"1" * 50, ())], base_offset=1))
    other[16] = 1
    with Partition(raw(build([(0, None, b"0", ())]) + other), raw(bytes(other))) as broker, opened(broker) as cluster:
        reading = cluster.read("t", 0, 0, 2)
        assert next(reading).next_offset == 1
        with pytest.raises(CorruptRecords):
            next(reading)


def test_a_batch_that_is_cut_off_behind_whole_ones_is_fetched_again() -> None:
    second = build([(0, None, b"1", ())], base_offset=1, leader_epoch=4)
    both = build([(0, None, b"0", ())], leader_epoch=4) + second
    with Partition(raw(both[:-5], 2), raw(second, 2)) as broker, opened(broker) as cluster:
        assert [row.next_offset for row in cluster.read("t", 0, 0, 2)] == [1, 2]


def test_damage_at_the_end_is_none_of_a_range_before_it() -> None:
    """A broker that holds records back is asked for those at the end, which nobody wants to read."""
    held_back = [empty(10), empty(10), raw(b"rotten"), batch(0)]
    with Partition(*held_back) as broker, opened(broker) as cluster:
        assert [row.next_offset for row in cluster.read("t", 0, 0, 1)] == [1]
