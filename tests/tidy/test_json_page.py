"""Every command with --json has a schema, and the page is made of the schemas."""

from collections.abc import Iterator
from inspect import signature

import pytest
from cyclopts import App
from jsonschema import Draft202012Validator
from tests.printed import command_of, hold
from tests.tidy.json_page import PAGE, page

from strandline.cli.app import app
from strandline.cli.commands import COMMANDS, PLUGINS, plugins
from strandline.cli.printed.schemas import printed, schema


def with_json(command: App, name: str, seen: set[int]) -> Iterator[str]:
    """The names of commands that have the option, once each: a second name of a command is not another command."""
    call = command.default_command
    if call is not None and id(call) not in seen and "json_output" in signature(call).parameters:
        seen.add(id(call))
        yield name
    for each in command:
        if not each.startswith("-"):
            yield from with_json(command[each], f"{name} {each}", seen)


def test_every_command_with_json_has_a_schema_and_no_other() -> None:
    found = [name for first in (*COMMANDS, *plugins(PLUGINS)) for name in with_json(app[first], first, set())]
    assert len(found) > 45
    assert {"pipeline audit", "demo pipeline"} <= set(found), "pip install -e spark"
    assert sorted(found) == sorted(printed()), "name what it prints in printed/schemas.py; pip install -e spark"


def test_every_schema_is_one() -> None:
    for command in printed():
        Draft202012Validator.check_schema(schema(command))


def test_the_page_is_what_the_schemas_say() -> None:
    assert PAGE.read_text() == page(), "write it again: python tests/tidy/json_page.py"


def test_a_field_that_no_schema_has_is_found_and_so_is_one_that_is_missing() -> None:
    row = '{"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 4096}'
    arguments = ("users", "list", "--json", "--bootstrap-server", "x:1")
    assert command_of(arguments) == "users list"
    hold(arguments, f"[{row}]\n")
    for wrong in (row.replace("user", "name"), row.replace("4096", '"4096"'), row.replace('"user": "alice", ', "")):
        with pytest.raises(AssertionError):
            hold(arguments, f"[{wrong}]\n")
