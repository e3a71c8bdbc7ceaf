"""What a sample of JSON values has in common."""

import json
from typing import Any

import pytest

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.ingest.inferring import infer


def columns(*values: Any) -> dict[str, str]:
    return {each.name: each.type for each in infer([json.dumps(value).encode() for value in values])}


def test_the_narrowest_type_that_fits_all() -> None:
    assert columns(
        {"id": 1, "price": 2, "when": "2026-01-02", "ok": True, "odd": 1},
        {"id": None, "price": 2.5, "when": "2026-01-02T03:04:05Z", "more": "x", "odd": "one"},
    ) == {"id": "bigint", "price": "double", "when": "timestamp", "ok": "boolean", "odd": "string", "more": "string"}


def test_what_is_nested() -> None:
    assert columns({"a": {"b": [1, None]}, "c": []}, {"a": {"b": [0.5], "d e": "2026-01-01"}, "c": [{"x": 1}]}) == {
        "a": "STRUCT<`b`: ARRAY<double>, `d e`: date>",
        "c": "ARRAY<STRUCT<`x`: bigint>>",
    }


def test_what_has_no_type_stays_text() -> None:
    assert columns({"a": None, "b": {}, "c": 1 << 70, "d": {"x": 1}}, {"d": 5}) == {
        "a": "string",
        "b": "string",
        "c": "string",
        "d": "string",
    }


def test_names_that_records_have_get_an_underscore_and_keep_their_path() -> None:
    found = infer([b'{"timestamp": "x", "Key": 1, "id": 1, "ID": 2}'])
    assert [(each.name, each.path) for each in found] == [
        ("timestamp_", ("timestamp",)),
        ("Key_", ("Key",)),
        ("id", ("id",)),
    ]


def test_bad_examples_do_not_count() -> None:
    assert [each.name for each in infer([None, b"nope", b"[1]", b"\xff", b'{"a": 1}'])] == ["a"]
    with pytest.raises(StrandlineError, match="0 of the records of the sample are JSON objects"):
        infer([b"nope"])
