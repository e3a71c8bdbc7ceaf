"""Each API needs what it needs in Kafka: it is permitted in each way that there is, and in no way that lacks a part.

`ways.CASES` has a request of each API, and the sets of ACLs that each permit it. A real node answers them.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from tests.rows import each
from tests.unit.authorizing.kafkas_table import FREE, KAFKAS, OWN, Row
from tests.unit.authorizing.one_node import (
    ANN,
    HOST,
    OneNode,
    on_topic,
)
from tests.unit.authorizing.ways import CASES, REFUSALS, C, Case, Op

from strandline.base.effects import Caller, Received, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.broker.authorizing.fetching import FetchSessions
from strandline.broker.authorizing.table import broker_rows, controller_rows
from strandline.broker.route import BROKER_ROUTES, CONTROLLER_ROUTES
from strandline.metadata.security.acls import AclPermission, ResourceType
from strandline.security.acls.authorizer import Authorizer
from strandline.wire.api import API_BY_KEY, api_of
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.records.fetch import FetchRequest
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest

# Their answers have no error where something is hidden: tested in `test_hiding`.
HIDING: set[Row] = {
    ("Metadata", "Describe", "Cluster"),
    ("DescribeCluster", "Describe", "Cluster"),
    ("ListGroups", "Describe", "Cluster"),
    ("ListGroups", "Describe", "Group"),
    ("ListTransactions", "Describe", "TransactionalId"),
    ("DescribeTransactions", "Describe", "Topic"),
    ("DescribeLosses", "Describe", "Cluster"),
    ("DescribeLosses", "Describe", "Topic"),
    ("GetReplicaLogInfo", "ClusterAction", "Cluster"),
    ("GetReplicaLogInfo", "Describe", "Cluster"),
    ("GetReplicaLogInfo", "Describe", "Topic"),
}


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def errors_in(value: Any) -> Iterator[ErrorCode]:
    """All error codes of an answer."""
    if isinstance(value, tuple):
        for one in value:
            yield from errors_in(one)
    elif isinstance(value, Struct):
        for field in value.__struct_fields__:
            found = getattr(value, field)
            if field.endswith("error_code"):
                yield ErrorCode(found)
            else:
                yield from errors_in(found)


def refusals(node: OneNode, case: Case, number: int) -> set[ErrorCode]:
    answer = node.ask(case.message, case.version, connection=number, listener=case.listener)
    node.disconnect(number)
    return set(errors_in(answer)) & REFUSALS


@pytest.fixture(scope="module")
def node() -> OneNode:
    made = OneNode(transaction_two_phase_commit_enable="true")
    made.create("t", "doomed")
    made.ask(FindCoordinatorRequest(key="g"), 3, "User:root")  # so that there are coordinators
    made.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4, "User:root")
    return made


@each("case", CASES, ids=lambda case: type(case.message).__name__)
def test_a_request_is_permitted_in_each_way_that_kafka_knows_and_in_none_that_lacks_a_part(
    case: Case, node: OneNode
) -> None:
    node.revoke_all()
    number = node.sequence + 100
    assert refusals(node, case, number) == {case.error}, "nothing is permitted"
    for way in case.ways:
        for missing in way if len(way) > 1 else ():
            node.revoke_all()
            node.allow(*(acl for acl in way if acl != missing))
            assert refusals(node, case, number), missing
        node.revoke_all()
        node.allow(*way)
        if case.is_of_nodes:
            assert is_admitted(node, case)
        else:
            assert refusals(node, case, number) == set(), way


def test_a_controller_refuses_at_its_own_listener_what_nobody_was_permitted(node: OneNode) -> None:
    """Also what brokers pass on to it: whoever reaches the controllers may send that without a broker."""
    node.revoke_all()
    served = {request.api_key for request in CONTROLLER_ROUTES}
    asked = [case for case in CASES if type(case.message).api_key in served]
    assert {API_BY_KEY[key].name for key in served} - FREE == {api_of(case.message).name for case in asked}
    for number, case in enumerate(asked, 10_000):
        error = C if type(case.message) is FetchRequest else case.error  # records of a controller are the metadata log
        assert refusals(node, replace(case, listener="CONTROLLER"), number) == {error}, api_of(case.message).name


def is_admitted(node: OneNode, case: Case) -> bool:
    to = ReplyTo(7, 0, 0, type(case.message).api_key, case.version)
    asked = Received(to, Caller("test", HOST, case.listener, ANN), case.message)
    rows = controller_rows() if case.listener == "CONTROLLER" else broker_rows(FetchSessions())
    return rows[to.api_key](node.node, asked, node.node.gate.authorizer.rights(ANN, HOST)) is asked


def test_the_table_is_kafkas() -> None:
    found = set(HIDING)
    for case in CASES:
        for acl in (acl for way in case.ways for acl in way):
            found.add((api_of(case.message).name, camel(acl.operation.name), camel(acl.resource_type.name)))
    assert found - (KAFKAS | OWN) == set(), "needed here, and not in Kafka"
    assert (KAFKAS | OWN) - found == set(), "needed in Kafka, and not here"


def test_each_api_that_is_served_has_a_row() -> None:
    routes: Any = (*BROKER_ROUTES, *CONTROLLER_ROUTES)
    served = {request.api_key for request in routes}
    assert served <= broker_rows(FetchSessions()).keys() == controller_rows().keys()
    judged = {API_BY_KEY[key].name for key in served} - FREE - {row[0] for row in HIDING}
    assert judged <= {api_of(case.message).name for case in CASES}


def test_no_node_starts_with_an_api_that_has_no_row(node: OneNode) -> None:
    rows = broker_rows(FetchSessions())
    del rows[DescribeQuorumRequest.api_key]
    with pytest.raises(KeyError):
        node.node.gate.guarded(BROKER_ROUTES, rows)


def test_nobody_is_permitted_anything_before_acls_are_known() -> None:
    authorizer = Authorizer(frozenset({"User:root"}), allows_if_no_acl=True)
    asked = Op.READ, ResourceType.TOPIC, "t"
    assert not authorizer.rights(ANN, HOST).allows(*asked)
    assert authorizer.rights("User:root", HOST).allows(*asked)
    authorizer.follow({}, 0)
    assert authorizer.rights(ANN, HOST).allows(*asked)


def test_an_acl_is_about_an_address_however_a_socket_or_java_writes_it() -> None:
    """A socket that is bound to :: has addresses of IPv4 as ::ffff:10.0.0.1."""
    asked = Op.READ, ResourceType.TOPIC, "t"
    everybody, denied = on_topic(Op.READ, "t"), AclPermission.DENY
    ways = (("10.0.0.1", "::ffff:10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("0:0:0:0:0:0:0:1", "::1"))
    for version, (written, connected) in enumerate(ways):
        authorizer = Authorizer(frozenset(), allows_if_no_acl=False)
        no = on_topic(Op.READ, "t", host=written, permission=denied)
        authorizer.follow({Uuid(b"y" * 16): everybody, Uuid(b"n" * 16): no}, version)
        assert not authorizer.rights(ANN, connected).allows(*asked), (written, connected)
        assert authorizer.rights(ANN, "10.0.0.2").allows(*asked)
