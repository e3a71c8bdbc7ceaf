"""Entries of the loss ledger that an operator has seen, in the metadata log."""

from random import Random

import msgspec
import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, Uuid
from strandline.controller import acknowledging
from strandline.controller.basis import ControllerConfig
from strandline.controller.controller import Controller
from strandline.metadata.acknowledgements import SEEN_RESOURCE, Acknowledged, acknowledged, id_of
from strandline.metadata.framing import decode_record, encode_record
from strandline.metadata.image import Image
from strandline.metadata.records import ConfigRecord
from strandline.wire.messages.own.acknowledge_losses import AcknowledgeLossesRequest, SeenLosses
from strandline.wire.messages.own.describe_losses import Loss

ID = Uuid(b"a topic deleted.")
LOSS = Loss(topic="gone", topic_id=ID, partition=7, where="replica", node_id=1, start=3, time_ms=50)


def request(*ids: int, partition: int = 7, by: str = "me@here") -> AcknowledgeLossesRequest:
    return AcknowledgeLossesRequest(partitions=(SeenLosses(topic_id=ID, partition=partition, ids=ids),), asked_by=by)


def kept(cluster: Cluster) -> list[ConfigRecord]:
    found = [record for record in cluster.log.records if isinstance(record, ConfigRecord)]
    return [record for record in found if record.resource_type == SEEN_RESOURCE]


def test_an_acknowledgement_is_a_record_of_a_kind_that_kafka_has_and_outlives_controller_and_snapshot() -> None:
    cluster = Cluster(brokers=1)
    assert cluster.ask(request(id_of(LOSS))).error_code == ErrorCode.NONE
    (record,) = kept(cluster)
    assert decode_record(encode_record(record)) == record
    image = Image()
    image.apply_all(cluster.log.records)
    snapshot = Image()
    snapshot.apply_all(image.records())
    for one in (image, snapshot):
        assert acknowledged(one.configs, LOSS) == Acknowledged("me@here", cluster.now)
        assert acknowledged(one.configs, msgspec.structs.replace(LOSS, time_ms=51)) is None
        assert acknowledged(one.configs, msgspec.structs.replace(LOSS, partition=8)) is None
    cluster.controller = Controller(NodeId(101), ControllerConfig(), {}, Random(2), cluster.log)
    cluster.take(cluster.controller.activate(snapshot, 9, cluster.now))
    cluster.ask(request(id_of(LOSS), by="another"))
    assert kept(cluster) == [record], "who saw it first is kept"


def test_the_same_entry_twice_in_a_request_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(brokers=1)
    cluster.ask(request(5, 5, -1))
    assert [record.name for record in kept(cluster)] == ["0000000000000005", "ffffffffffffffff"]


def test_who_it_was_is_text_of_bounded_length() -> None:
    cluster = Cluster(brokers=1)
    cluster.ask(request(5, by="a\n\x00b" + "c" * 1000))
    (record,) = kept(cluster)
    assert record.value is not None
    by = msgspec.json.decode(record.value)["by"]
    assert (by[:3], len(by)) == ("abc", acknowledging.NAME_MAX - 2)


def test_requests_and_what_is_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(brokers=1)
    assert cluster.ask(request(*range(1001))).error_code == ErrorCode.INVALID_REQUEST
    assert cluster.ask(request(1, partition=-1)).error_code == ErrorCode.INVALID_REQUEST
    assert cluster.ask(request(*range(1000))).error_code == ErrorCode.NONE
    monkeypatch.setattr(acknowledging, "KEPT_MAX", 1001)
    assert cluster.ask(request(1000)).error_code == ErrorCode.NONE
    assert cluster.ask(request(1001)).error_code == ErrorCode.POLICY_VIOLATION
    assert cluster.ask(request(1000)).error_code == ErrorCode.NONE, "nothing new"
    assert len(kept(cluster)) == 1001
