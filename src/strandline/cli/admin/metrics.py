"""`strandline metrics`: the main gauges of every node of a cluster, side by side."""

from typing import Any

from strandline.cli.connect import HERE, Json, OfCluster, fail
from strandline.cli.show import Column, Fitted, show_rows
from strandline.client.admin.nodes.gauges import COLUMNS, gauges_of, urls
from strandline.metadata.configs.node_configs import METRICS_LISTENER


def metrics(*, cluster: OfCluster = HERE, json_output: Json = False) -> None:
    """Show the main metrics of every node; docs/metrics.md lists all metrics.

    A node serves metrics at the address in its property strandline.metrics.listener; `strandline up` sets it.
    """
    found = {node: gauges_of(url) for node, url in urls(cluster.config).items()}
    if not any(found.values()):
        fail("no node serves metrics", f"set {METRICS_LISTENER}=127.0.0.1:9404 in its properties")
    rows = [{"node": node, **(summed or {})} for node, summed in sorted(found.items())]
    show_rows(rows, json_output, table_of, line_of)


def line_of(row: dict[str, Any]) -> str:
    values = [f"{column.replace(' ', '-')}={row[column]}" for column, _, _ in COLUMNS if column in row]
    return f"node={row['node']} " + (" ".join(values) or "no-metrics")


def table_of(rows: list[dict[str, Any]]) -> Fitted:
    """One line a gauge and one column a node: a cluster has more gauges than nodes."""
    table = Fitted(Column(""), *(Column(f"node {row['node']}", "right") for row in rows))
    for column, _, is_trouble in COLUMNS:
        values = [row.get(column) for row in rows]
        style = "yellow" if is_trouble and any(values) else ""
        table.add_row(column, *("–" if value is None else str(value) for value in values), style=style)
    return table
