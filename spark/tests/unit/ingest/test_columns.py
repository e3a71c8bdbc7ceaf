"""Declarations of columns: in words of SQL, by a JSON Schema, by Spark's own JSON."""

import json
from typing import Any

import pytest

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.ingest.columns import Column, columns_of, columns_of_file, columns_of_text, ddl


def test_a_column_is_a_type_or_a_table() -> None:
    declared: dict[str, Any] = {
        "id": "long not null",
        "amount": "decimal(10,2)",
        "city": {"type": "string", "path": "address.city", "required": True},
        "zip": {"type": "int", "path": ["address", "zip.code"]},
        "seen": "Timestamp_Millis NOT NULL",
    }
    assert columns_of(declared) == (
        Column("id", "long", ("id",), True),
        Column("amount", "decimal(10,2)", ("amount",)),
        Column("city", "string", ("address", "city"), True),
        Column("zip", "int", ("address", "zip.code")),
        Column("seen", "timestamp_millis", ("seen",), True),
    )
    assert ddl(columns_of(declared), "`x` STRING") == (
        "`id` long, `amount` decimal(10,2), `address` STRUCT<`city`: string, `zip.code`: int>, "
        "`seen` bigint, `x` STRING"
    )


def test_columns_of_one_line() -> None:
    assert columns_of_text("id long not null, tags array<struct<a: int, b: string>>, d decimal(4,2)") == (
        Column("id", "long", ("id",), True),
        Column("tags", "array<struct<a: int, b: string>>", ("tags",)),
        Column("d", "decimal(4,2)", ("d",)),
    )


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"offset": "long"}, "a column cannot be named offset"),
        ({"a": "int", "A": "int"}, "two columns have the name a"),
        ({"a": {"type": "int", "kind": 1}}, "column a is declared as"),
        ({"a": {"path": "b"}}, "column a is declared as"),
        ({"a": {"type": "int", "path": ""}}, "column a has the path ''"),
        ({"a": "int", "b": {"type": "int", "path": "a.c"}}, "the path of b leads through a"),
        ({"a": "int", "b": {"type": "string", "path": "a"}}, "a is declared as int and as string"),
    ],
)
def test_a_declaration_that_is_invalid_is_refused(declared: dict[str, Any], why: str) -> None:
    with pytest.raises(StrandlineError, match=why):
        columns_of(declared)


def test_the_advice_for_a_name_that_is_taken_works() -> None:
    assert columns_of({"timestamp_": {"type": "string", "path": "timestamp"}})[0].path == ("timestamp",)


def test_a_json_schema() -> None:
    schema = {
        "type": "object",
        "required": ["id"],
        "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}, "lat": {"type": "number"}}}},
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["string", "null"]},
            "when": {"type": "string", "format": "date-time"},
            "day": {"type": "string", "format": "date"},
            "places": {"type": "array", "items": {"$ref": "#/$defs/place"}},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "either": {"type": ["string", "integer"]},
            "anything": True,
        },
    }
    assert [(each.name, each.type, each.required) for each in columns_of_file(json.dumps(schema), "f")] == [
        ("id", "bigint", True),
        ("name", "string", False),
        ("when", "timestamp", False),
        ("day", "date", False),
        ("places", "ARRAY<STRUCT<`city`: string, `lat`: double>>", False),
        ("counts", "MAP<STRING, bigint>", False),
        ("either", "string", False),
        ("anything", "string", False),
    ]


def test_a_json_schema_that_refers_to_itself_is_refused() -> None:
    schema = {
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        "properties": {"root": {"$ref": "#/$defs/node"}},
    }
    with pytest.raises(StrandlineError, match=r"root\.next refers to #/\$defs/node, which"):
        columns_of_file(json.dumps(schema), "f")


def test_sparks_own_json() -> None:
    from strandline_spark.schemas import TOPIC_ROW_WITH_HEADERS

    fields = [
        field for field in TOPIC_ROW_WITH_HEADERS.jsonValue()["fields"] if field["name"] in ("value", "timestampType")
    ]
    fields += [
        {"name": "h", "type": TOPIC_ROW_WITH_HEADERS["headers"].dataType.jsonValue(), "nullable": False},
        {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "long"}},
    ]
    found = columns_of_file(json.dumps({"type": "struct", "fields": fields}), "f")
    assert [(each.name, each.type, each.required) for each in found] == [
        ("value", "binary", False),
        ("timestampType", "int", False),
        ("h", "ARRAY<STRUCT<`key`: string, `value`: binary>>", True),
        ("m", "MAP<string, bigint>", False),
    ]


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"fields": [1]}', '{"fields": [{"name": "a", "type": {"type": "x"}}]}']
)
def test_a_file_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(StrandlineError, match="f "):
        columns_of_file(text, "f ")
