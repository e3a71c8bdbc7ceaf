"""A log of `__consumer_offsets` that Kafka 3.9 has written, loaded by a coordinator of ours.

The file is zlib in base 85. The broker was stopped while each of the two live groups had two members, one of them
static: librdkafka's in `classic-live`, Java's in `consumer-live`. The member of each empty group had left. The expected
values are what Kafka's own tool showed before.
"""

import base64
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.unit.group.coordination import Coordination

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import Uuid
from strandline.group.classic.group import Group, State
from strandline.group.consumer.group import ConsumerGroup
from strandline.metadata.records import PartitionRecord, RemoveTopicRecord, TopicRecord
from strandline.wire.batch import batches
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest

WRITTEN = Path(__file__).parent / "kafkas_groups.txt"
TOPIC_ID = Uuid(base64.urlsafe_b64decode("ICQ7iUgSR52g_SabMrxAIQ=="))
STATIC, DYNAMIC = "XcTOkvrYTAmNxZfLWBx56Q", "lu9UDBatTy-XEuSUPJPyFg"
SHARES = {STATIC: {0, 1}, DYNAMIC: {2, 3}}
LEADER = "s1-9a78ba7f-f72e-40f9-a621-343e503fe96f"


@pytest.fixture
def c() -> Coordination:
    c = Coordination()
    c.image.apply(RemoveTopicRecord(topic_id=c.image.topic_ids["t"]))
    partitions = [
        PartitionRecord(partition_id=p, topic_id=TOPIC_ID, replicas=(1,), isr=(1,), leader=1) for p in range(4)
    ]
    c.image.apply_all([TopicRecord(name="t", topic_id=TOPIC_ID), *partitions])
    c.apply()
    log = zlib.decompress(base64.b85decode(WRITTEN.read_text().replace("\n", "")))
    for header in batches(log):
        c.log.written(log[header.position : header.end])
    c.fail_over()
    return c


def consumers(c: Coordination, group_id: str) -> ConsumerGroup:
    group = c.shard.consumer(group_id)
    assert group is not None
    return group


def classic(c: Coordination, group_id: str) -> Group:
    group = c.shard.classic(group_id)
    assert group is not None
    return group


def beat(c: Coordination, member_id: str, epoch: int) -> Any:
    owned = (TopicPartitions(topic_id=TOPIC_ID, partitions=tuple(sorted(SHARES[member_id]))),)
    request = ConsumerGroupHeartbeatRequest(
        group_id="consumer-live", member_id=member_id, member_epoch=epoch, topic_partitions=owned
    )
    return c.ask(request)


def test_all_that_kafka_wrote_is_understood(c: Coordination) -> None:
    assert c.shard.unreadable == 0
    assert set(c.shard.groups) == {"classic-live", "classic-empty", "consumer-live", "consumer-empty"}


def test_offsets_are_those_that_kafkas_tool_showed(c: Coordination) -> None:
    shown = {group: [them[("t", p)].offset for p in range(4)] for group, them in c.shard.offsets.items()}
    assert shown == {
        "classic-live": [50] * 4,
        "classic-empty": [200] * 4,
        "consumer-live": [200] * 4,
        "consumer-empty": [0, 0, 200, 200],
    }


def test_members_of_the_consumer_protocol_keep_what_they_have(c: Coordination) -> None:
    group = consumers(c, "consumer-live")
    assert {name: set(one.assigned[TOPIC_ID]) for name, one in group.members.items()} == SHARES
    assert (group.members[STATIC].instance_id, group.members[DYNAMIC].assignor) == ("s1", "range")
    for member_id in (STATIC, DYNAMIC):
        answer = beat(c, member_id, 2)
        assert (answer.error_code, answer.assignment) == (E.NONE, None), "nothing is new for it"
    assert {name: set(one.assigned[TOPIC_ID]) for name, one in group.members.items()} == SHARES
    assert not consumers(c, "consumer-empty").members


def test_members_of_the_classic_protocol_go_on_with_their_generation(c: Coordination) -> None:
    group = classic(c, "classic-live")
    assert (group.state, group.generation, group.leader, len(group.members)) == (State.STABLE, 3, LEADER, 2)
    for member_id in group.members:
        instance = "s1" if member_id == LEADER else None
        request = HeartbeatRequest(
            group_id="classic-live", member_id=member_id, generation_id=3, group_instance_id=instance
        )
        assert c.ask(request).error_code == E.NONE
    assert not classic(c, "classic-empty").members
