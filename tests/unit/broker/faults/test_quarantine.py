"""Which requests are known again, and for how long."""

import msgspec

from strandline.base import VERSION
from strandline.broker.faults.quarantine import FILE, KEPT_MAX, Listed, Quarantine, Quarantined, fingerprint
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import build, patch, patch_log_append_time, read_header
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE = 0


def produce(batch: bytes | bytearray, name: str = "t", index: int = 0) -> Quarantined:
    data = PartitionProduceData(index=index, records=batch)
    return fingerprint(PRODUCE, 9, ProduceRequest(topic_data=(TopicProduceData(name=name, partition_data=(data,)),)))


def heartbeats(count: int) -> tuple[Quarantined, ...]:
    return tuple(fingerprint(12, 4, HeartbeatRequest(group_id=str(at))) for at in range(count))


def test_a_produce_is_known_again_after_a_leader_has_written_into_its_batch() -> None:
    sent = build([(5, b"k", b"v", ())], producer_id=3, producer_epoch=1, base_sequence=8)
    written = bytearray(sent)
    patch(written, read_header(written), 1000, 7)
    patch_log_append_time(written, read_header(written), 99)
    assert bytes(written) != sent
    assert produce(written) == produce(sent)


def test_other_requests_are_others() -> None:
    sent = build([(5, b"k", b"v", ())], producer_id=3, producer_epoch=1, base_sequence=8)
    later = build([(5, b"k", b"v", ())], producer_id=3, producer_epoch=1, base_sequence=9)
    value = build([(5, b"k", b"w", ())], producer_id=3, producer_epoch=1, base_sequence=8)
    found = [produce(sent), produce(later), produce(value), produce(sent, name="u"), produce(sent, index=1)]
    found += [produce(b""), produce(b"x"), *heartbeats(2)]
    assert len(set(found)) == len(found)


def test_the_list_outlives_the_process_and_keeps_the_newest() -> None:
    disk = SimDisk()
    quarantine = Quarantine(disk, "/d")
    first, second, *others = heartbeats(KEPT_MAX + 1)
    assert quarantine.add((first, second))
    assert not quarantine.add((second,)), "it is known"
    assert list(Quarantine(disk, "/d").found) == [first, second]
    quarantine.add(tuple(others))
    assert list(Quarantine(disk, "/d").found) == [second, *others]
    assert Quarantine(disk, "/d").holds(12, 4, HeartbeatRequest(group_id="1"))
    assert not Quarantine(disk, "/d").holds(12, 3, HeartbeatRequest(group_id="1")), "another version"


def test_the_list_of_another_version_and_one_that_is_no_list_count_as_empty() -> None:
    disk = SimDisk()
    listed = msgspec.json.encode(Listed(VERSION, heartbeats(2)))
    for content, count in ((listed, 2), (msgspec.json.encode(Listed("0", heartbeats(2))), 0), (b"[", 0), (b"[]", 0)):
        disk.write_file(f"/d/{FILE}", content)
        assert len(Quarantine(disk, "/d").found) == count
