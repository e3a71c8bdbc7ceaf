"""The laws about permissions fire, and the oracle that they ask decides as Kafka does."""

from typing import Any, cast

import pytest
from msgspec import structs
from tests.rows import each

from strandline.base.effects import Caller, Received, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.metadata.image import Topic
from strandline.metadata.security.acls import CLUSTER_NAME, Acl, AclPermission, PatternType, ResourceType
from strandline.metadata.security.acls import AclOperation as Op
from strandline.sim.laws.clients.naive import is_permitted
from strandline.sim.laws.clients.permissions import is_forged
from strandline.sim.simulation import World
from strandline.sim.world.connection import Connection
from strandline.sim.world.options import Options
from strandline.wire.messages.quorum.vote import VoteRequest, VoteResponse
from strandline.wire.messages.records.fetch import FetchRequest, ReplicaState
from strandline.wire.messages.records.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from strandline.wire.messages.topics.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
ALICE = Caller("alice", "h1", "PLAINTEXT", "User:alice")
E = ErrorCode


def acl(
    name: str = "orders",
    who: str = "User:alice",
    operation: Op = Op.WRITE,
    permission: AclPermission = ALLOW,
    *,
    kind: ResourceType = TOPIC,
    host: str = "*",
    is_prefix: bool = False,
) -> Acl:
    pattern = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    return Acl(kind, name, pattern, who, host, operation, permission)


ROWS = [
    ("nothing permits nothing", (), Op.WRITE, False),
    ("the ACL itself", (acl(),), Op.WRITE, True),
    ("another operation", (acl(),), Op.READ, False),
    ("who may write may describe", (acl(),), Op.DESCRIBE, True),
    ("to deny reading does not deny describing", (acl(), acl(operation=Op.READ, permission=DENY)), Op.DESCRIBE, True),
    ("a denial wins", (acl(), acl(who="User:*", permission=DENY)), Op.WRITE, False),
    ("a denial of all wins", (acl(), acl(operation=Op.ALL, permission=DENY)), Op.WRITE, False),
    ("a denial of another topic", (acl(), acl("ordersx", permission=DENY)), Op.WRITE, True),
    ("a prefix", (acl("ord", is_prefix=True),), Op.WRITE, True),
    ("a literal name is no prefix", (acl("ord"),), Op.WRITE, False),
    ("everybody, everything", (acl("*", "User:*", Op.ALL),), Op.WRITE, True),
    ("a prefix that is a star", (acl("*", is_prefix=True),), Op.WRITE, False),
    ("somebody else", (acl(who="User:bob"),), Op.WRITE, False),
    ("another host", (acl(host="h2"),), Op.WRITE, False),
    ("its own host", (acl(host="h1"),), Op.WRITE, True),
    ("another type of resource", (acl(kind=ResourceType.GROUP),), Op.WRITE, False),
]


@each("row", ROWS, ids=[name for name, *_ in ROWS])
def test_the_oracle_decides_as_kafka_does(row: tuple[str, tuple[Acl, ...], Op, bool]) -> None:
    _, acls, operation, expected = row
    assert is_permitted(acls, "User:alice", "h1", (operation, TOPIC, "orders")) is expected


# --- the law, with answers that no sound node gives


class Asking:
    """A node of a world with an authorizer, which is asked by a client and answers what the test says."""

    def __init__(self, *acls: Acl) -> None:
        self.world = World(1, Options(authorizer=True))
        self.machine = next(iter(self.world.machines.values()))
        self.machine.start()
        law = self.world.laws.permissions
        assert law is not None
        self.law = law
        self.image = self.world.committed.image
        self.image.topics[Uuid(b"o" * 16)] = Topic("orders", Uuid(b"o" * 16), {})
        self.image.topic_ids["orders"] = Uuid(b"o" * 16)
        self.set(*acls)

    def set(self, *acls: Acl) -> None:
        """These are the ACLs from now on, as the node has applied them."""
        node = self.machine.node
        assert node is not None
        node.image.acls = {Uuid(bytes([n]) * 16): one for n, one in enumerate(acls, 1)}
        node.image.acls_version += 1
        self.law.look(self.machine, node)

    def ask(self, message: Any, version: int, caller: Caller = ALICE) -> Received:
        received = Received(ReplyTo(1, 0, 0, message.key, version), caller, message)
        self.machine.inbound[1] = cast(Connection, None)  # it is open
        self.law.received(self.machine, received)
        return received

    def answer(self, received: Received, message: Any) -> None:
        self.law.replies(self.machine, Reply(received.to, message))


def produced(code: ErrorCode) -> ProduceResponse:
    rows = (PartitionProduceResponse(index=0, error_code=code),)
    return ProduceResponse(responses=(TopicProduceResponse(topic_id=Uuid(b"o" * 16), partition_responses=rows),))


PRODUCE = ProduceRequest(acks=-1)


def test_a_record_is_not_taken_from_somebody_who_never_had_the_right() -> None:
    asking = Asking()
    received = asking.ask(PRODUCE, 13)
    asking.set(acl("other"))
    with pytest.raises(AssertionError, match="n1 answers Produce of User:alice, which was never permitted"):
        asking.answer(received, produced(E.NONE))


def test_one_moment_of_the_request_is_enough_to_permit_it_and_to_refuse_it() -> None:
    for acls, later in ((), (acl(),)), ((acl(),), ()):
        for code in (E.NONE, E.TOPIC_AUTHORIZATION_FAILED):
            asking = Asking(*acls)
            received = asking.ask(PRODUCE, 13)
            asking.set(*later)
            asking.answer(received, produced(code))


def test_who_had_the_right_all_the_time_is_not_refused() -> None:
    asking = Asking(acl())
    received = asking.ask(PRODUCE, 13)
    asking.set(acl(), acl("other"))
    with pytest.raises(AssertionError, match="n1 refuses Produce to User:alice, which was permitted"):
        asking.answer(received, produced(E.TOPIC_AUTHORIZATION_FAILED))


def test_a_right_that_was_lost_before_the_request_came_is_none() -> None:
    asking = Asking(acl())
    asking.set()
    with pytest.raises(AssertionError, match="never permitted"):
        asking.answer(asking.ask(PRODUCE, 13), produced(E.NONE))


def test_a_name_that_may_not_be_described_is_in_no_answer_unless_it_was_in_the_request() -> None:
    hidden = MetadataResponse(topics=(MetadataResponseTopic(error_code=E.TOPIC_AUTHORIZATION_FAILED, name="orders"),))
    asking = Asking()
    named = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))
    asking.answer(asking.ask(named, 12), hidden)
    with pytest.raises(AssertionError, match="names 'orders' to User:alice"):
        asking.answer(asking.ask(MetadataRequest(topics=None), 12), hidden)


def test_an_answer_for_a_connection_that_is_closed_tells_nobody_anything() -> None:
    asking = Asking()
    received = asking.ask(PRODUCE, 13)
    del asking.machine.inbound[1]
    asking.answer(received, produced(E.NONE))


def test_super_users_and_nodes_are_not_judged() -> None:
    admin, node = structs.replace(ALICE, principal="User:admin"), structs.replace(ALICE, is_node=True)
    for caller in (admin, node):
        asking = Asking()
        asking.answer(asking.ask(PRODUCE, 13, caller), produced(E.NONE))


# --- what only nodes may ask


def test_a_request_of_nodes_is_refused_to_everybody_else() -> None:
    world = World(1, Options(intruder_ms=20))
    law, machine = world.laws.permissions, world.machines[next(iter(world.machines))]
    assert law is not None
    machine.start()
    machine.inbound[1] = cast(Connection, None)
    received = Received(ReplyTo(1, 0, 0, VoteRequest.key, 2), ALICE, VoteRequest())
    law.received(machine, received)
    law.replies(machine, Reply(received.to, VoteResponse(error_code=E.CLUSTER_AUTHORIZATION_FAILED)))
    law.received(machine, received)
    with pytest.raises(AssertionError, match="which does not know the cluster's secret"):
        law.replies(machine, Reply(received.to, VoteResponse()))


def test_what_counts_as_a_request_of_nodes() -> None:
    consumer, follower = FetchRequest(), FetchRequest(replica_state=ReplicaState(2, 7))
    of_controller = structs.replace(ALICE, listener="CONTROLLER")
    rows = [(consumer, ALICE, False), (follower, ALICE, True), (consumer, of_controller, True), (PRODUCE, ALICE, False)]
    for message, caller, expected in rows:
        received = Received(ReplyTo(1, 0, 0, message.key, 13), caller, message)
        assert is_forged(received) is expected, message
        assert not is_forged(structs.replace(received, caller=structs.replace(caller, is_node=True)))


def test_the_cluster_is_a_resource_too() -> None:
    acls = (acl(CLUSTER_NAME, operation=Op.IDEMPOTENT_WRITE, kind=CLUSTER),)
    assert is_permitted(acls, "User:alice", "h1", (Op.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME))
    assert not is_permitted(acls, "User:alice", "h1", (Op.ALTER, CLUSTER, CLUSTER_NAME))
