"""The APIs of our own: their bytes, which no other implementation could tell, written down once."""

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.wire.api import API_BY_KEY, OWN_KEYS, advertised_versions
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.own.acknowledge_losses import (
    AcknowledgeLossesRequest,
    AcknowledgeLossesResponse,
    SeenLosses,
)
from strandline.wire.messages.own.describe_losses import DescribeLossesRequest, DescribeLossesResponse, Loss
from strandline.wire.messages.own.get_replica_log_info import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    PartitionLogInfo,
    TopicPartitionLogInfo,
    TopicPartitions,
)
from strandline.wire.messages.own.quarantine import QuarantinedRequest, QuarantineRequest, QuarantineResponse
from strandline.wire.messages.topics import elect_leaders
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest
from strandline.wire.primitive import Malformed
from strandline.wire.schema import Message

ID = Uuid(bytes(range(16)))

PLAIN = PartitionLogInfo(
    partition=3,
    last_written_leader_epoch=4,
    current_leader_epoch=5,
    log_end_offset=6,
    error_code=ErrorCode.REQUEST_LIMIT_REACHED,
    error_message="ab",
)
TAGGED = PartitionLogInfo(high_watermark=7, log_start_offset=8, last_stable_offset=9, recovered_uncleanly=True)

GOLDEN: list[tuple[Message, str]] = [
    (
        GetReplicaLogInfoRequest(broker_id=2, topic_partitions=(TopicPartitions(topic_id=ID, partitions=(1,)),)),
        f"00000002 02 {ID.hex()} 02 00000001 00 00",
    ),
    (GetReplicaLogInfoRequest(broker_id=2, topic_partitions=None), "00000002 00 00"),
    (
        GetReplicaLogInfoResponse(
            broker_epoch=1,
            topic_partition_log_info_list=(TopicPartitionLogInfo(topic_id=ID, partition_log_info=(PLAIN, TAGGED)),),
        ),
        f"{1:016x} 02 {ID.hex()} 03"
        f"00000003 00000004 00000005 {6:016x} 03e8 03 6162 00"
        f"00000000 ffffffff ffffffff {'ff' * 8} 0000 00"
        f"04 904e08 {7:016x} 914e08 {8:016x} 924e08 {9:016x} 934e01 01"
        f"00 00",
    ),
    (DescribeLossesRequest(topics=("t",), limit=5), "02 02 74 00000005 00"),
    (DescribeLossesRequest(topics=None, limit=5), "00 00000005 00"),
    (
        DescribeLossesResponse(
            node_id=1,
            losses=(
                Loss(
                    topic="t",
                    topic_id=ID,
                    partition=2,
                    where="replica",
                    node_id=1,
                    start=3,
                    end=4,
                    certainty=2,
                    replica=1,
                    old_epoch=5,
                    new_epoch=6,
                    time_ms=7,
                    cause="c",
                ),
            ),
            left_out=8,
            lost_records=9,
        ),
        f"00000000 0000 00 00000001 02"
        f"02 74 {ID.hex()} 00000002 08 {b'replica'.hex()} 00000001 {3:016x} {4:016x} 02 00000001 00000005 00000006"
        f"{7:016x} 02 63 00"
        f"00000008 {9:016x} 00",
    ),
    (
        AcknowledgeLossesRequest(
            partitions=(SeenLosses(topic_id=ID, partition=2, ids=(3, -1)),), asked_by="ab", timeout_ms=5
        ),
        f"02 {ID.hex()} 00000002 03 {3:016x} {'ff' * 8} 00 03 6162 00000005 00",
    ),
    (
        AcknowledgeLossesResponse(error_code=ErrorCode.INVALID_REQUEST, error_message="ab"),
        "00000000 002a 03 6162 00",
    ),
    (
        QuarantineRequest(requests=(QuarantinedRequest(api=19, version=7, digest="0a"),)),
        "02 0013 0007 03 3061 00 00",
    ),
    (QuarantineResponse(error_code=ErrorCode.INVALID_REQUEST), "00000000 002a 00"),
]


@pytest.mark.parametrize(("message", "golden"), GOLDEN, ids=lambda value: type(value).__name__)
def test_the_bytes_are_these(message: Message, golden: str) -> None:
    data = bytes.fromhex(golden)
    assert encode_bytes(message, 0).hex() == data.hex()
    assert decode_all(type(message), 0, data) == message
    for size in range(len(data)):
        with pytest.raises(Malformed):
            decode_all(type(message), 0, data[:size])


def test_the_acknowledging_user_is_in_fields_that_others_skip() -> None:
    data = encode_bytes(DescribeLossesResponse(losses=(Loss(acknowledged_by="me", acknowledged_ms=7),)), 0)
    assert bytes.fromhex(f"02 00 03 03 6d65 01 08 {7:016x}") in data
    assert decode_all(DescribeLossesResponse, 0, data).losses[0].acknowledged_by == "me"


@pytest.mark.parametrize("on_controller", [False, True])
def test_no_client_sees_our_own_apis(on_controller: bool) -> None:
    assert max(row.api_key for row in advertised_versions(on_controller=on_controller)) < OWN_KEYS


def test_an_election_of_a_designated_leader_has_one_for_each_partition() -> None:
    row = elect_leaders.TopicPartitions(topic="t", partitions=(1, 2), designated_leaders=(3, 4))
    request = ElectLeadersRequest(election_type=2, topic_partitions=(row,), timeout_ms=5)
    data = bytes.fromhex("02 02 02 74 03 00000001 00000002 03 00000003 00000004 00 00000005 00")
    assert encode_bytes(request, 3).hex() == data.hex()
    assert decode_all(ElectLeadersRequest, 3, data) == request
    assert decode_all(ElectLeadersRequest, 2, encode_bytes(request, 2)).topic_partitions[0].designated_leaders is None


@pytest.mark.parametrize("on_controller", [False, True])
def test_clients_learn_of_version_two_of_elections(on_controller: bool) -> None:
    (row,) = [row for row in advertised_versions(on_controller=on_controller) if row.api_key == 43]
    assert (row.min_version, row.max_version) == (0, 2)
    assert ElectLeadersRequest.versions[-1] == 3


def test_every_message_of_our_own_is_among_them() -> None:
    own = {cls for key, api in API_BY_KEY.items() if key >= OWN_KEYS for cls in (api.request, api.response)}
    assert own <= {type(message) for message, _ in GOLDEN}


def test_a_reader_that_does_not_know_our_tags_reads_what_the_kip_has() -> None:
    """A tagged field is skipped by its size: what follows is read as if it were not there."""
    info = TopicPartitionLogInfo(topic_id=ID, partition_log_info=(TAGGED, PLAIN))
    data = encode_bytes(GetReplicaLogInfoResponse(topic_partition_log_info_list=(info,)), 0)
    unknown = data.replace(bytes.fromhex("904e08"), bytes.fromhex("a04e08"))  # tag 10 016
    assert len(unknown) == len(data)
    assert unknown != data
    read = decode_all(GetReplicaLogInfoResponse, 0, unknown).topic_partition_log_info_list[0].partition_log_info
    assert [row.high_watermark for row in read] == [-1, -1]
    assert read[1] == PLAIN
