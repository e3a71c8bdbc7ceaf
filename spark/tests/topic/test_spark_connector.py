"""The page for people who come from Spark's Kafka connector, held against the options that there are."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from strandline.client.config import INERT, KEYS, LEVELS, REFUSED, SECURITY_KEYS
from strandline_spark.topic.options import OF_SINKS, OPTIONS

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "spark-connector.md"
SINK = ROOT / "spark" / "src" / "strandline_spark" / "sink" / "options.py"
VERDICTS = ("same", "better", "absent", "other")


def rows(section: str) -> list[tuple[list[str], str, str]]:
    """(names in backticks, verdict, what is different) of the section's table."""
    text = PAGE.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    cells = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    return [
        (re.findall(r"`([^`]+)`", names), verdict.strip(), what.strip())
        for names, verdict, what in cells
        if verdict.strip()
    ]


def names(section: str) -> list[str]:
    return [name for row in rows(section) for name in row[0]]


def each_once(found: Iterable[str], wanted: Iterable[str]) -> None:
    assert sorted(found) == sorted(wanted)


def test_the_page_has_each_option_of_the_source_once() -> None:
    each_once(names("Source options"), OPTIONS)


def test_the_page_has_each_option_of_the_sink_once() -> None:
    each_once(names("Sink options"), OF_SINKS)
    code = SINK.read_text()
    read = [name.lower() for name in re.findall(r'given(?:\.get\(|, )"(\w+)"', code)]
    each_once({name.lower() for name in OF_SINKS}, set(read))


def test_the_page_has_each_key_of_the_client_once() -> None:
    keys = (*KEYS, *LEVELS, *SECURITY_KEYS, *REFUSED, *INERT)
    each_once(names("kafka.*"), (f"kafka.{key}" for key in keys))


def test_every_row_has_a_verdict_and_says_why_where_it_is_not_the_same() -> None:
    for section in ("Source options", "Sink options", "kafka.*", "What else is different"):
        for found, verdict, what in rows(section):
            assert verdict in VERDICTS, found
            assert verdict == "same" or what, found


def test_defaults_that_the_page_names_are_those_of_the_client() -> None:
    from strandline.client.config import ClientConfig

    config = ClientConfig(bootstrap=(("localhost", 9092),))
    assert (config.max_partition_fetch_bytes, config.batch_size) == (4 << 20, 512 << 10)
