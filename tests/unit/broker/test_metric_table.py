"""The table of metrics: Kafka's names by the rules of the JMX exporter, and the page that is made of it."""

import re
from pathlib import Path

from strandline.base.metrics import Kind, Metric
from strandline.broker.metric_table import METRICS

PAGE = Path(__file__).parents[3] / "docs/metrics.md"
SUFFIX = {Kind.COUNTER: "_total", Kind.GAUGE: "", Kind.HISTOGRAM: "", Kind.SUMMARY: ""}


def name_by_the_rules(metric: Metric) -> str:
    """domain, type and name with underscores; a meter is a counter without "PerSec"; an attribute follows its bean."""
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


def page() -> str:
    lines = [
        "# Metrics",
        "",
        "A node serves metrics as Prometheus' text format at `http://host:port/metrics` if its property",
        "`strandline.metrics.listener=host:port` is set. An empty host means 127.0.0.1. `strandline up` sets it for each",
        "of its nodes, on the ports after those of brokers and controllers, and prints where;",
        "`strandline metrics` shows the most important ones of all nodes.",
        "",
        "Names are those that the common rules of Prometheus' JMX exporter make of Kafka's, not lower-cased. Kafka's",
        "rates are counters here: Prometheus computes the rate.",
        "",
        "Alert first on: `OfflinePartitionsCount` above 0, the sum of `ActiveControllerCount` other than 1,",
        "`UnderMinIsrPartitionCount` above 0. While a partition is under its min ISR, records written with acks 0 or 1 are",
        "taken and can be read by nobody; `strandline_partition_records_above_high_watermark_under_min_isr` says how many.",
        "",
        "Times are in milliseconds, as Kafka's. A node is one thread, so the time of a request in a queue is that behind",
        "requests that came in the same read. Fetches by consumers and followers wait for records on purpose: their",
        "total time says little.",
        "",
        "This page is made of the table `broker/metric_table.py`; a test holds it to that, and rewrites it with",
        "`--rewrite`.",
        "",
        "| metric | type | labels | meaning | in Kafka |",
        "|---|---|---|---|---|",
    ]
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        source = f"`{metric.source}`" if metric.source else ""
        lines.append(f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.help} | {source} |")
    return "\n".join(lines) + "\n"


def test_the_page_says_what_the_table_says(rewrite: bool) -> None:
    if rewrite:
        PAGE.write_text(page())
    assert PAGE.read_text() == page(), "run this test with --rewrite, and read what changed"
