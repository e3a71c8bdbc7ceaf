"""`strandline configs` for users, clients and ips: quotas and SCRAM credentials, as kafka-configs has them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strandline.cli.connect import fail, misuse
from strandline.cli.security.passwords import warn_of_command_line
from strandline.client.admin.quotas import ANY_NAME, alter_quotas, component, quotas_of
from strandline.client.admin.users import (
    ITERATIONS,
    alter_credentials,
    credentials_of,
    deletion,
    upsertion,
)
from strandline.client.config import ClientConfig
from strandline.metadata.security.quotas import CLIENT_ID, CLIENT_KEYS, IP, IP_KEYS, USER, QuotaEntity
from strandline.metadata.security.scram import MECHANISM_CODES

KINDS = {"users": USER, "clients": CLIENT_ID, "ips": IP}
SHOWN = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}
DEFAULT = ""  # a name on the command line
CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]{0,9}),)?password=(.*)", re.DOTALL)


def names_in_order(arguments: Sequence[str]) -> list[str]:
    """Of --entity-name and --entity-default as they stand on the command line: each belongs to one --entity-type."""
    names = []
    for at, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option == "--entity-name":
            names.append(value if equals else "".join(arguments[at + 1 : at + 2]))
        elif argument == "--entity-default":
            names.append(DEFAULT)
    return names


def check_types(types: Sequence[str], names: Sequence[str]) -> None:
    if len(set(types)) < len(types) or (len(types) > 1 and set(types) != {"users", "clients"}):
        misuse(f"--entity-type {' '.join(types)} do not go together", "name one, or users and clients")
    if len(names) > len(types):
        misuse("there are more of --entity-name and --entity-default than of --entity-type", "name one for each type")


# --- describe


def describe_clients(config: ClientConfig, types: Sequence[str], names: Sequence[str], json_output: bool) -> None:
    check_types(types, names)
    wanted = [*names, *[ANY_NAME] * (len(types) - len(names))]
    components = [
        component(KINDS[kind], None if name == DEFAULT else name) for kind, name in zip(types, wanted, strict=True)
    ]
    quotas = quotas_of(config, *components)
    users = credentials(config, *names) if list(types) == ["users"] and DEFAULT not in names else {}
    if json_output:
        rows = [{"entity": dict(entity), "configs": values} for entity, values in quotas.items()]
        rows += [{"entity": {USER: user}, "configs": values} for user, values in users.items()]
        print(json.dumps(rows))
        return
    for entity, values in quotas.items():
        print(f"Quota configs for {shown(entity)} are {', '.join(settings(values))}")
    for user, values in users.items():
        print(f"SCRAM credential configs for user-principal '{user}' are {', '.join(settings(values))}")


def credentials(config: ClientConfig, *names: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in credentials_of(config, *names):
        found.setdefault(one.user, {})[one.mechanism] = f"iterations={one.iterations}"
    return found


def settings(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        yield f"{key}={value}"


def shown(entity: QuotaEntity) -> str:
    """Users first, as Kafka does."""
    parts = dict(entity)
    return ", ".join(
        f"the default {SHOWN[kind]}" if parts[kind] is None else f"{SHOWN[kind]} '{parts[kind]}'"
        for kind in SHOWN
        if kind in parts
    )


# --- alter


def alter_clients(
    config: ClientConfig,
    types: Sequence[str],
    names: Sequence[str],
    added: Mapping[str, str],
    deleted: Sequence[str],
    *,
    validate_only: bool,
) -> None:
    check_types(types, names)
    if len(names) != len(types):
        misuse(
            f"{len(types)} of --entity-type have {len(names)} names",
            "name --entity-name or --entity-default for each type",
        )
    may = [*IP_KEYS] if "ips" in types else [*CLIENT_KEYS]
    if list(types) == ["users"]:
        may += [*MECHANISM_CODES]
    unknown = [key for key in (*added, *deleted) if key not in may]
    if unknown:
        kinds = " and ".join(types)
        fail(f"{', '.join(unknown)} cannot be set for {kinds}", f"{kinds} have {', '.join(may)}", status=2)
    changed = [key for key in (*added, *deleted) if key in MECHANISM_CODES]
    if changed and len(changed) < len(added) + len(deleted):
        misuse("quotas and SCRAM credentials cannot be changed together", "run one command for each")
    if changed:
        alter_user(config, names[0], added, deleted, validate_only=validate_only)
    else:
        entity = tuple(sorted((KINDS[kind], name or None) for kind, name in zip(types, names, strict=True)))
        alter_entity(config, entity, added, deleted, validate_only=validate_only)
    who = ", ".join(f"{kind.removesuffix('s')} {name or '(default)'}" for kind, name in zip(types, names, strict=True))
    print(f"{'Could update' if validate_only else 'Completed updating'} config for {who}.")


def alter_user(
    config: ClientConfig, user: str, added: Mapping[str, str], deleted: Sequence[str], *, validate_only: bool
) -> None:
    if user == DEFAULT:
        misuse("a SCRAM credential belongs to one user", "name the user with --entity-name")
    if validate_only:
        misuse("--validate-only is not for SCRAM credentials", "leave it out")
    changes = [upserted(user, mechanism, text) for mechanism, text in added.items()]
    if added:
        warn_of_command_line()
    for change in (*(deletion(user, mechanism) for mechanism in deleted), *changes):
        alter_credentials(config, change)  # a request may change a user once


def upserted(user: str, mechanism: str, text: str) -> Any:
    """`text`: "iterations=8192,password=secret", or without iterations. It is in no error."""
    found = CREDENTIAL.fullmatch(text)
    if found is None:
        misuse(f"{mechanism} needs [iterations=NUMBER,password=PASSWORD]", "iterations may be left out")
    iterations = int(found[1]) if found[1] not in (None, "", "-1") else ITERATIONS
    return upsertion(user, mechanism, found[2], iterations)


def alter_entity(
    config: ClientConfig,
    entity: QuotaEntity,
    added: Mapping[str, str],
    deleted: Sequence[str],
    *,
    validate_only: bool,
) -> None:
    changes: dict[str, float | None] = {key: number(key, text) for key, text in added.items()}
    if deleted:
        parts = [component(kind, name) for kind, name in entity]
        current = quotas_of(config, *parts).get(entity, {})
        unset = [key for key in deleted if key not in current]
        if unset:
            fail(f"Invalid config(s): {','.join(unset)}", f"--delete-config removes what was set for {shown(entity)}")
    changes |= dict.fromkeys(deleted)
    alter_quotas(config, entity, changes, validate_only=validate_only)


def number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return misuse(f"Cannot parse quota configuration value for {key}: {text}", "a quota is a number")
