"""docs/json.md, made from the schemas of what commands print: `python tests/tidy/json_page.py` writes it again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from strandline.cli.printed.schemas import printed, prints_lines, schema

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
HEAD = """# JSON of commands

Commands that print facts have `--json`. This page lists their fields. `strandline schema COMMAND` prints the same as
JSON Schema (draft 2020-12), for validators and generators of code. Page and schemas are made from the types in
`cli/printed` (for the commands on Spark, `strandline_spark/printed`), by `python tests/tidy/json_page.py`, and tests
hold what commands print against them. `strandline schema` knows the commands on Spark if `strandline[spark]` is
installed.

The document goes to the standard output, and everything else to the standard error. A command that fails before it
knows anything prints no document. The exit statuses are in `strandline COMMAND --help`.

New fields may be added: a reader must ignore the fields that it does not know. The changelog names each field that is
renamed or removed. `null` means that there is no value. Times that end in `_ms` are milliseconds, and those that end in
`_s` seconds.
"""


def page() -> str:
    known: dict[str, Any] = {}
    lines = [HEAD, "## Commands", "", "| command | document |", "|---|---|"]
    for command in printed():
        document = schema(command)
        for name, definition in document.get("$defs", {}).items():
            assert known.setdefault(name, definition) == definition, f"two types have the name {name}"
        kind = kind_of(document)
        lines.append(f"| `{command}` | {f'one in each line: {kind}' if prints_lines(command) else kind} |")
    lines += ["", "## Types", ""]
    for name in sorted(known):
        lines += of_type(name, known[name])
    return "\n".join(lines).rstrip() + "\n"


def of_type(name: str, definition: dict[str, Any]) -> Iterator[str]:
    yield from (f"### {name}", "")
    if definition.get("description"):
        yield from (" ".join(definition["description"].split()), "")
    yield from ("| field | type | |", "|---|---|---|")
    needed = definition.get("required", ())
    for field, declared in definition["properties"].items():
        is_optional = field not in needed and "default" not in declared
        description = declared.get("description", "")
        yield f"| `{field}` | {kind_of(declared)}{', may be absent' if is_optional else ''} | {description} |"
    yield ""


def kind_of(declared: dict[str, Any]) -> str:
    if "$ref" in declared:
        name = declared["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in declared:
        return " or ".join(kind_of(one) for one in declared["anyOf"])
    if "enum" in declared:
        return " or ".join(f"`{value}`" for value in declared["enum"])
    kind = declared.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        parts = declared.get("prefixItems", [])
        item = declared.get("items")
        of = ", ".join(map(kind_of, parts)) if parts else kind_of(item) if item else "any value"
        return f"array of {of}"
    if kind == "object" and isinstance(declared.get("additionalProperties"), dict):
        return f"object of {kind_of(declared['additionalProperties'])}"
    return str(kind)


if __name__ == "__main__":
    PAGE.write_text(page())
