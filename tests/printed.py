"""What a command printed with --json, held against its schema. Whatever runs a command in the tests calls this."""

import json
from collections.abc import Sequence
from functools import cache

from jsonschema import Draft202012Validator

from strandline.cli.printed.schemas import printed as commands_with_json
from strandline.cli.printed.schemas import prints_lines, schema


@cache
def validator(command: str) -> Draft202012Validator:
    """Strict: a reader ignores a field that it does not know, but here it is one that nobody has documented."""
    document = schema(command)
    for definition in document.get("$defs", {}).values():
        definition["additionalProperties"] = False
    return Draft202012Validator(document)


def command_of(arguments: Sequence[str]) -> str | None:
    """The command that these arguments of `strandline` name, if it has JSON."""
    two, known = " ".join(arguments[:2]), commands_with_json()
    found = two if two in known else arguments[0]
    return found if found in known else None


def hold(arguments: Sequence[str], printed: str) -> None:
    """Fails if this is not what the command's schema allows. `printed`: all of its standard output."""
    command = command_of(arguments)
    if "--json" not in arguments or not printed.strip() or command is None:
        return
    for document in printed.splitlines() if prints_lines(command) else [printed]:
        problems = [f"{one.json_path}: {one.message}" for one in validator(command).iter_errors(json.loads(document))]
        assert not problems, f"strandline {command} --json differs from its type in `printed`: {'; '.join(problems)}"
