"""`strandline configs`: what topics, brokers, groups and subscriptions to the metrics of clients are set to, and where
from; changes of it. Options as kafka-configs.

Users, clients and ips, which have quotas and credentials, are the matter of `cli.security.client_configs`.
"""

import json
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from strandline.cli.connect import HERE, Json, OfCluster, fail, misuse
from strandline.cli.security.client_configs import DEFAULT, KINDS, alter_clients, describe_clients, names_in_order
from strandline.client.admin.nodes.configs import (
    CLIENT_METRICS,
    CLUSTER_DEFAULT,
    NUMBERS,
    OWN_SOURCES,
    described,
    refuse,
    rows_of,
)
from strandline.client.ask import Servers, ask_any
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.cluster.list_config_resources import ListConfigResourcesRequest
from strandline.wire.messages.topics.metadata import MetadataRequest

app = App(
    name="configs",
    help="Show and change configurations of topics, brokers, groups and client-metrics, and of users, clients and ips.",
)

SET, DELETE = 0, 1

Type = Annotated[
    list[Literal["topics", "brokers", "groups", "client-metrics", "users", "clients", "ips"]],
    Parameter(
        help="topics, brokers, groups, client-metrics, users, clients or ips; users and clients may be named together",
        negative="",
    ),
]
Name = Annotated[
    list[str] | None,
    Parameter(
        help="the topic, broker's id, group, subscription, user, client id or address; all of them if it is omitted",
        negative="",
    ),
]
Default = Annotated[
    int,
    Parameter(
        count=True, show_default=False, help="the default of all brokers, users, clients or ips, in place of a name"
    ),
]


@app.command
def describe(
    *,
    entity_type: Type,
    entity_name: Name = None,
    entity_default: Default = 0,
    all_: Annotated[
        bool, Parameter(name="--all", negative="", help="include keys that have their default value")
    ] = False,
    docs: Annotated[bool, Parameter(negative="", help="add a description of each key")] = False,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Show the keys that were changed; with --all, every key. Users, clients and ips have quotas, users credentials."""
    given = names_of(entity_name, entity_default)
    if entity_type[0] in KINDS:
        describe_clients(cluster.config, entity_type, given, json_output)
        return
    kind, name = entity(entity_type, given)
    names = [name] if name is not None else every(cluster.config, kind)
    rows = [row for each in names for row in rows_of(cluster.config, kind, each, all_)]
    if json_output:
        print(json.dumps(rows))
        return
    for each in names:
        print(f"{'All' if all_ else 'Dynamic'} configs for {title(kind, each)} are:")
        for row in rows:
            if row["entity_name"] == each:
                print(line_of(row, docs))


@app.command
def alter(
    *,
    entity_type: Type,
    entity_name: Annotated[
        list[str] | None,
        Parameter(help="the topic, broker's id, group, subscription, user, client id or address", negative=""),
    ] = None,
    entity_default: Default = 0,
    add_config: Annotated[str, Parameter(help="K1=V1,K2=[V2,V3]; a value with commas needs brackets")] = "",
    delete_config: Annotated[str, Parameter(help="K1,K2: reset these keys to their defaults")] = "",
    validate_only: Annotated[bool, Parameter(negative="", help="check the changes, and change nothing")] = False,
    cluster: OfCluster = HERE,
) -> None:
    """Change configurations: all the given keys, or none."""
    added, deleted = parse_added(add_config), [key.strip() for key in delete_config.split(",") if key.strip()]
    if not added and not deleted:
        misuse("nothing is to be changed", "name keys with --add-config or --delete-config")
    given = names_of(entity_name, entity_default)
    if entity_type[0] in KINDS:
        alter_clients(cluster.config, entity_type, given, added, deleted, validate_only=validate_only)
        return
    kind, name = entity(entity_type, given)
    if name is None:
        misuse("no entity is named", "name it with --entity-name; --entity-default means all brokers")
    unset = [key for key in deleted if key not in altered_keys(cluster.config, kind, name)] if deleted else []
    if unset:
        fail(
            f"Invalid config(s): {','.join(unset)}", f"--delete-config resets what was set for {name or 'all brokers'}"
        )
    changes = [AlterableConfig(name=key, config_operation=SET, value=value) for key, value in added.items()]
    changes += [AlterableConfig(name=key, config_operation=DELETE) for key in deleted]
    resource = AlterConfigsResource(resource_type=NUMBERS[kind], resource_name=name, configs=tuple(changes))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (result,) = ask_any(cluster.config, request, 1).responses
    refuse(result)
    print(f"{'Could update' if validate_only else 'Completed updating'} config for {title(kind, name)}.")


def names_of(named: list[str] | None, defaults: int) -> list[str]:
    """In the order of the command line, with the defaults as `DEFAULT`."""
    return names_in_order(sys.argv) if named and defaults else [*(named or ()), *[DEFAULT] * defaults]


def entity(types: Sequence[str], names: Sequence[str]) -> tuple[str, str | None]:
    """The resource's type, and its name; None for every one."""
    if len(types) > 1 or len(names) > 1:
        misuse(
            f"{len(types)} of --entity-type and {len(names)} of --entity-name do not go together",
            "name one of each; only users and clients may be combined",
        )
    kind = types[0]
    if DEFAULT in names and kind != "brokers":
        misuse(f"{kind} have no default", "name one with --entity-name; brokers, users, clients and ips have a default")
    return kind, names[0] if names else None


def every(bootstrap: Servers, kind: str) -> list[str]:
    if kind in ("groups", CLIENT_METRICS):
        answer = ask_any(bootstrap, ListConfigResourcesRequest(resource_types=(NUMBERS[kind],)), 1)
        refuse(answer)
        return [resource.resource_name for resource in answer.config_resources]
    metadata = ask_any(bootstrap, MetadataRequest(topics=None), 12)
    if kind == "topics":
        return sorted(topic.name for topic in metadata.topics)
    return [str(node) for node in sorted(broker.node_id for broker in metadata.brokers)] + [CLUSTER_DEFAULT]


def altered_keys(bootstrap: Servers, kind: str, name: str) -> list[str]:
    own = OWN_SOURCES[kind][-1 if name == CLUSTER_DEFAULT else 0]
    return [
        config.name
        for config in described(bootstrap, kind, name)
        if config.config_source == own or any(synonym.source == own for synonym in config.synonyms)
    ]


def title(kind: str, name: str) -> str:
    if name == CLUSTER_DEFAULT:
        return "the default of all brokers"
    return f"{kind.removesuffix('s')} {name}"


def line_of(row: dict[str, Any], docs: bool = False) -> str:
    """As kafka-configs has it."""
    synonyms = ", ".join(f"{s['source']}:{s['name']}={s['value']}" for s in row["synonyms"])
    sensitive = str(row["sensitive"]).lower()
    value = "null" if row["value"] is None else row["value"]
    line = f"  {row['name']}={value} sensitive={sensitive} synonyms={{{synonyms}}}"
    return f"{line}\n      {row['documentation']}" if docs else line


def parse_added(text: str) -> dict[str, str]:
    """ "a=b,c=[d,e]"; a comma within brackets separates nothing."""
    found: dict[str, str] = {}
    for entry in re.split(r",(?=[^\]]*(?:\[|$))", text) if text else []:
        key, equals, value = entry.partition("=")
        if not (key.strip() and equals):
            misuse(f"--add-config needs KEY=VALUE, not '{entry}'", "a value with commas needs brackets: KEY=[A,B]")
        value = value.strip()
        found[key.strip()] = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    return found
