"""The table of metrics: Kafka's names by the rules of the JMX exporter, and the page that is made of it."""

import re
from pathlib import Path

from strandline.base.metrics import Kind, Metric
from strandline.broker.metrics.table import METRICS

PAGE = Path(__file__).parents[4] / "docs/metrics.md"
SUFFIX = {Kind.COUNTER: "_total", Kind.GAUGE: "", Kind.HISTOGRAM: ""}


def name_by_the_rules(metric: Metric) -> str:
    """domain, type and name with underscores; a meter is a counter without "PerSec"; an attribute follows its bean.

    KIP-966's are names with dots alone."""
    if ":" not in metric.source:
        whole = metric.source.removesuffix("_count") if metric.kind is Kind.COUNTER else metric.source
        return whole.replace(".", "_") + SUFFIX[metric.kind]
    bean, _, attribute = metric.source.partition(" ")
    domain, _, keys = bean.partition(":")
    parts = dict(part.split("=") for part in keys.split(","))
    name = [domain, parts["type"].replace("-", ""), parts.get("name", ""), attribute.replace("-", "_")]
    if metric.kind is Kind.COUNTER:
        name = [part.removesuffix("PerSec").removesuffix("_total") for part in name]
    return "_".join(part.replace(".", "_") for part in name if part) + SUFFIX[metric.kind]


def test_names_are_distinct_and_only_counters_end_in_total() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER), metric.name
        assert re.fullmatch(r"[a-zA-Z_]\w*", metric.name)
        assert metric.help
        assert not set("\n\\") & set(metric.help), "would need escaping"


def test_names_are_those_that_the_jmx_exporters_rules_make_of_kafkas() -> None:
    for metric in METRICS:
        if metric.source:
            assert metric.name == name_by_the_rules(metric)
        else:
            assert metric.name.startswith(("strandline_", "process_")), "not Kafka's, and so not by Kafka's name"


HEADER = "| metric | type | labels | meaning | in Kafka |\n|---|---|---|---|---|\n"


def rows() -> str:
    lines = []
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        source = f"`{metric.source}`" if metric.source else ""
        lines.append(f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.help} | {source} |\n")
    return "".join(lines)


def test_the_page_lists_what_the_table_has(rewrite: bool) -> None:
    before, header, listed = PAGE.read_text().partition(HEADER)
    if rewrite:
        PAGE.write_text(before + HEADER + rows())
        return
    assert header + listed == HEADER + rows(), "run this test with --rewrite, and read what changed"
