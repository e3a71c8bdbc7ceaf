"""Configurations, features, users, ACLs, metrics."""

from typing import Annotated, TypedDict

from strandline.cli.printed.words import says


class Synonym(TypedDict):
    """One level that has a value for a key."""

    name: str
    value: str | None
    source: str


class ConfigRow(TypedDict):
    """One key of a topic, broker, group or subscription."""

    entity_type: str
    entity_name: Annotated[str, says("empty: the default of all brokers")]
    name: str
    value: Annotated[str | None, says("null if it is sensitive")]
    source: str
    read_only: bool
    sensitive: bool
    synonyms: Annotated[list[Synonym], says("the levels that have a value, the one in force first")]
    documentation: str | None


class EntityConfigs(TypedDict):
    """What is set for users, client ids or addresses."""

    entity: Annotated[dict[str, str | None], says("names by type (user, client-id, ip); null: the default")]
    configs: Annotated[dict[str, float | str], says("quotas, or mechanisms of credentials")]


class FeatureRow(TypedDict):
    """One feature."""

    feature: str
    min_supported: int
    max_supported: int
    level: Annotated[int, says("the finalized level; 0: off")]
    epoch: Annotated[int, says("the metadata offset of the last change")]


class UserRow(TypedDict):
    """One credential of a user."""

    user: str
    mechanism: str
    iterations: int


class AclRow(TypedDict):
    """One ACL."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class AclChanged(AclRow):
    """One ACL, and what was done with it."""

    outcome: Annotated[str, says("added, exists, or removed")]


NodeMetrics = Annotated[dict[str, int], says("the node's id as `node`, and its metrics by the titles of the table")]


class ConsoleStarted(TypedDict):
    """One line, as soon as the console listens."""

    url: Annotated[str, says("with the token that lets its first visitor in")]
    read_only: bool
