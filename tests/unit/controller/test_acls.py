"""ACLs are created and deleted: one by one, in one batch, and never twice."""

from collections.abc import Mapping
from typing import Any

from tests.rows import each
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode as E
from strandline.controller.security.acls import BYTES_MAX, LOOKS_MAX, RECORDS_MAX
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.configs.node_configs import STANDARD_AUTHORIZER
from strandline.metadata.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from strandline.wire.messages.security.create_acls import AclCreation, CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsFilter, DeleteAclsRequest

WITH_ACLS: Mapping[str, ConfigValue] = {"authorizer.class.name": STANDARD_AUTHORIZER}
TOO_LARGE = (E.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def creation(**fields: Any) -> AclCreation:
    values = {"resource_type": 2, "resource_name": "t", "principal": "User:a", "host": "*", "operation": 3}
    return AclCreation(**{**values, "permission_type": 3, **fields})


def anything(**fields: Any) -> DeleteAclsFilter:
    values = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    return DeleteAclsFilter(**{**values, **fields})


def named(one: AclCreation) -> DeleteAclsFilter:
    """The filter that finds this ACL alone."""
    return DeleteAclsFilter(
        resource_type_filter=one.resource_type,
        resource_name_filter=one.resource_name,
        pattern_type_filter=one.resource_pattern_type,
        principal_filter=one.principal,
        host_filter=one.host,
        operation=one.operation,
        permission_type=one.permission_type,
    )


def create(cluster: Cluster, *creations: AclCreation) -> list[tuple[int, str | None]]:
    answer = cluster.ask(CreateAclsRequest(creations=creations), version=3)
    return [(row.error_code, row.error_message) for row in answer.results]


def delete(cluster: Cluster, *filters: DeleteAclsFilter) -> list[Any]:
    """Of each filter, its error or the principals of what it found."""
    answer = cluster.ask(DeleteAclsRequest(filters=filters), version=3)
    return [
        (row.error_code, row.error_message) if row.error_code else [acl.principal for acl in row.matching_acls]
        for row in answer.filter_results
    ]


def principals(cluster: Cluster) -> list[str]:
    return [acl.principal for acl in cluster.image.acls.values()]


def written(cluster: Cluster, kind: type) -> int:
    return sum(isinstance(record, kind) for record in cluster.log.records)


def test_what_is_valid_is_created_in_one_batch_beside_what_is_not() -> None:
    cluster = Cluster(static=WITH_ACLS)
    answers = create(cluster, creation(), creation(principal="a"), creation(principal="User:b", host=""))
    assert [error for error, _ in answers] == [E.NONE, E.INVALID_REQUEST, E.INVALID_REQUEST]
    assert "Could not parse principal from `a`" in str(answers[1][1])
    assert create(cluster, creation(principal="User:c"), creation(principal="User:d")) == [(E.NONE, None)] * 2
    assert principals(cluster) == ["User:a", "User:c", "User:d"]
    assert [type(record) for record in cluster.log.batches[-1]] == [AccessControlEntryRecord] * 2


def test_an_acl_that_exists_is_created_again_without_a_record() -> None:
    cluster = Cluster(static=WITH_ACLS)
    assert create(cluster, creation(), creation()) == [(E.NONE, None)] * 2
    assert create(cluster, creation()) == [(E.NONE, None)]
    assert written(cluster, AccessControlEntryRecord) == 1
    assert create(cluster, creation(permission_type=2)) == [(E.NONE, None)]
    assert written(cluster, AccessControlEntryRecord) == 2


def test_each_filter_has_what_it_found_and_an_acl_is_deleted_once() -> None:
    cluster = Cluster(static=WITH_ACLS)
    ours = [creation(principal=f"User:{name}") for name in "abc"]
    create(cluster, *ours, creation(principal="User:d", resource_type=3))
    assert delete(cluster, anything(principal_filter="User:x")) == [[]]
    found = delete(cluster, named(ours[0]), anything(resource_type_filter=2), anything(operation=0))
    assert found == [["User:a"], ["User:a", "User:b", "User:c"], (E.INVALID_REQUEST, "Unknown entryFilter.")]
    assert written(cluster, RemoveAccessControlEntryRecord) == 3
    assert principals(cluster) == ["User:d"]
    assert delete(cluster, named(ours[0])) == [[]]
    assert create(cluster, ours[0]) == [(E.NONE, None)]
    assert principals(cluster) == ["User:d", "User:a"]


@each("pattern, found", [(1, ["User:a", "User:b"]), (2, ["User:a", "User:b", "User:c"]), (3, ["User:a"])], ids=str)
def test_a_filter_finds_by_pattern(pattern: int, found: list[str]) -> None:
    cluster = Cluster(static=WITH_ACLS)
    create(
        cluster,
        creation(principal="User:a"),
        creation(principal="User:b", resource_pattern_type=4),
        creation(principal="User:c", resource_name="*"),
        creation(principal="User:d", resource_name="tt"),
    )
    assert delete(cluster, anything(resource_name_filter="t", pattern_type_filter=pattern)) == [found]


def test_without_an_authorizer_nothing_is_created_or_deleted() -> None:
    for static in ({}, {"authorizer.class.name": ""}):
        cluster = Cluster(static=static)
        refused = (E.SECURITY_DISABLED, "No Authorizer is configured.")
        assert create(cluster, creation(), creation()) == [refused] * 2
        assert delete(cluster, anything()) == [refused]
        assert not cluster.image.acls


def test_a_request_that_is_too_large_is_refused_as_a_whole() -> None:
    """A batch that the metadata log has no room for would stop the controller, and whoever is asked next."""
    cluster = Cluster(static=WITH_ACLS)
    many = [creation(principal=f"User:{number}") for number in range(RECORDS_MAX)]
    assert create(cluster, *many, creation()) == [TOO_LARGE] * (RECORDS_MAX + 1)
    long = [creation(resource_type=3, resource_name=f"{n:030000}") for n in range(BYTES_MAX // 30_000 + 1)]
    assert create(cluster, *long) == [TOO_LARGE] * len(long)
    assert not cluster.image.acls
    assert create(cluster, *many[1:], creation()) == [(E.NONE, None)] * RECORDS_MAX
    create(cluster, many[0])
    wide = [anything()] * (LOOKS_MAX // RECORDS_MAX + 1)
    assert delete(cluster, *wide) == [TOO_LARGE] * len(wide)
    assert delete(cluster, *[named(creation())] * (RECORDS_MAX + 1)) == [TOO_LARGE] * (RECORDS_MAX + 1)
    too_many = (E.INVALID_REQUEST, "Cannot remove more than 10000 acls in a single delete operation.")
    assert delete(cluster, anything()) == [too_many]
    assert len(cluster.image.acls) == RECORDS_MAX + 1
    assert delete(cluster, *map(named, many)) == [[one.principal] for one in many]
    assert principals(cluster) == ["User:a"]
