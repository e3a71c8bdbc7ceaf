"""AlterClientQuotas: which entities and quotas there can be, and what a change writes."""

import math
from typing import Any

from tests.rows import each
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode as E
from strandline.controller.security.quotas import RECORDS_MAX
from strandline.wire.messages.security.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)

Name = tuple[str, str | None]
ALICE = ("user", "alice")
APP = ("client-id", "app")
HERE = ("ip", "127.0.0.1")
RATE = "producer_byte_rate"


def entry(*entity: Name, removed: tuple[str, ...] = (), **quotas: float) -> EntryData:
    ops = tuple(OpData(key=key, value=value) for key, value in quotas.items())
    return EntryData(
        entity=tuple(EntityData(kind, name) for kind, name in entity),
        ops=ops + tuple(OpData(key=key, remove=True) for key in removed),
    )


def alter(cluster: Cluster, *entries: EntryData, validate_only: bool = False) -> list[tuple[E, str | None]]:
    answer: Any = cluster.ask(AlterClientQuotasRequest(entries=entries, validate_only=validate_only), 1)
    return [(E(row.error_code), row.error_message) for row in answer.entries]


ALLOWED = [
    entry(ALICE, producer_byte_rate=1.0, consumer_byte_rate=float((1 << 63) - 1)),
    entry(ALICE, APP, request_percentage=0.01, controller_mutation_rate=0.5),
    entry(("user", None), ("client-id", None), request_percentage=math.inf),
    entry(("client-id", None), producer_byte_rate=1.0 + 1e-7),
    entry(HERE, connection_creation_rate=float((1 << 31) - 1)),
    entry(("ip", "::1"), connection_creation_rate=1.0),
    entry(("ip", None), connection_creation_rate=1.0),
    entry(ALICE, removed=(RATE, "no_such_key")),
    entry(ALICE),
]


@each("change", ALLOWED)
def test_what_can_be_is_done(change: EntryData) -> None:
    cluster = Cluster()
    assert alter(cluster, change) == [(E.NONE, None)]
    quotas = {op.key: op.value for op in change.ops if not op.remove}
    assert cluster.image.quotas == (
        {tuple(sorted((e.entity_type, e.entity_name) for e in change.entity)): quotas} if quotas else {}
    )


REFUSED = [
    (entry(producer_byte_rate=1.0), "Invalid empty client quota entity"),
    (entry(("group", "g"), producer_byte_rate=1.0), "Unhandled client quota entity type: group"),
    (entry(("user", ""), producer_byte_rate=1.0), "Empty user not supported"),
    (entry(ALICE, ALICE, producer_byte_rate=1.0), "Invalid client quota entity, duplicate entity entry user"),
    (entry(("user", "ü" * 513), producer_byte_rate=1.0), "The user must not be longer than 1024 bytes"),
    (
        entry(HERE, ALICE, connection_creation_rate=1.0),
        "Invalid quota entity combination, IP entity should not be combined with User or ClientId",
    ),
    (entry(("ip", "nowhere"), connection_creation_rate=1.0), "nowhere is not a valid IP or resolvable host."),
    (entry(("ip", "127.0.0.256"), connection_creation_rate=1.0), "127.0.0.256 is not a valid IP or resolvable host."),
    (entry(HERE, producer_byte_rate=1.0), "Invalid configuration key producer_byte_rate"),
    (entry(ALICE, connection_creation_rate=1.0), "Invalid configuration key connection_creation_rate"),
    (entry(ALICE, producer_byte_rate=0.0), "Quota producer_byte_rate must be greater than 0"),
    (entry(ALICE, request_percentage=-1.0), "Quota request_percentage must be greater than 0"),
    (entry(ALICE, request_percentage=math.nan), "Quota request_percentage must be greater than 0"),
    (entry(ALICE, producer_byte_rate=0.5), "producer_byte_rate cannot be a fractional value."),
    (entry(ALICE, producer_byte_rate=math.inf), "Proposed value for producer_byte_rate is too large for a LONG."),
    (
        entry(HERE, connection_creation_rate=float(1 << 31)),
        "Proposed value for connection_creation_rate is too large for an INT.",
    ),
    (
        entry(ALICE, removed=(RATE, RATE)),
        "Duplicate quota key producer_byte_rate not updating quota for this entity"
        " ClientQuotaEntity(entries={user=alice})",
    ),
]


@each(("change", "message"), REFUSED)
def test_what_cannot_be_is_refused_as_a_whole_and_other_entities_are_changed(change: EntryData, message: str) -> None:
    cluster = Cluster()
    beside = entry(("user", "bob"), producer_byte_rate=2.0)
    spoiled = EntryData(entity=change.entity, ops=(OpData(key="consumer_byte_rate", value=9.0), *change.ops))
    for wrong in (change, spoiled) if change.entity == entry(ALICE).entity else (change,):
        assert alter(cluster, wrong, beside) == [(E.INVALID_REQUEST, message), (E.NONE, None)]
    assert cluster.image.quotas == {(("user", "bob"),): {RATE: 2.0}}


def test_an_entity_that_is_named_twice_in_any_order_is_not_changed() -> None:
    cluster = Cluster()
    answers = alter(cluster, entry(ALICE, APP, producer_byte_rate=1.0), entry(APP, ALICE, consumer_byte_rate=2.0))
    why = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=app, user=alice})"
    assert answers == [(E.INVALID_REQUEST, why)]
    assert not cluster.image.quotas


def test_only_what_changes_is_written() -> None:
    cluster = Cluster()
    alter(cluster, entry(ALICE, producer_byte_rate=1.0, consumer_byte_rate=2.0))
    end = cluster.log.next_offset
    assert alter(cluster, entry(ALICE, removed=("request_percentage",), producer_byte_rate=1.0)) == [(E.NONE, None)]
    assert alter(cluster, entry(ALICE, producer_byte_rate=9.0), validate_only=True) == [(E.NONE, None)]
    assert alter(cluster, entry(ALICE, producer_byte_rate=0.0), validate_only=True)[0][0] == E.INVALID_REQUEST
    assert cluster.log.next_offset == end
    alter(cluster, entry(ALICE, removed=(RATE,), consumer_byte_rate=3.0))
    assert cluster.log.next_offset == end + 2
    assert cluster.image.quotas == {(ALICE,): {"consumer_byte_rate": 3.0}}


def test_more_than_one_batch_may_have_is_refused_together() -> None:
    cluster = Cluster()
    many = [entry(("user", f"u{n}"), producer_byte_rate=1.0) for n in range(RECORDS_MAX + 1)]
    assert set(alter(cluster, *many)) == {(E.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")}
    assert not cluster.image.quotas


def test_a_controller_that_is_none_refuses_every_entity() -> None:
    cluster = Cluster()
    cluster.take(cluster.controller.deactivate(cluster.now))
    assert [error for error, _ in alter(cluster, entry(ALICE), entry(HERE))] == [E.NOT_CONTROLLER] * 2
