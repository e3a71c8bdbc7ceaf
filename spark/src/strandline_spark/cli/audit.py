"""`strandline pipeline audit`: is every replica sound, do they agree, and is all there that was acknowledged?"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from strandline.cli.connect import CommandConfig, Json, fail, misuse
from strandline_spark.cli.options import Conf, Master, kafka_options, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from strandline.client.config import ClientConfig
    from strandline_spark.jobs.audit.ledger import Losses
    from strandline_spark.jobs.audit.report import AuditReport

Many = Parameter(negative="", consume_multiple=True, show_default=False)
# The queries are many and mostly small: what Spark does to make large ones fast costs these more than it saves.
LOCAL_CONF = (
    "spark.sql.adaptive.enabled=false",
    "spark.sql.codegen.wholeStage=false",
    f"spark.sql.shuffle.partitions={os.cpu_count() or 1}",
)


def audit(
    *directories: str,
    bootstrap_server: Annotated[
        str | None, Parameter(name=("--bootstrap-server", "--bootstrap"), env_var="STRANDLINE_BOOTSTRAP")
    ] = None,
    command_config: CommandConfig = None,
    acknowledged: Annotated[Sequence[str], Many] = (),
    topic: Annotated[Sequence[str], Many] = (),
    html: str | None = None,
    limit: int = 20,
    json_output: Json = False,
    master: Master = None,
    conf: Conf = (),
) -> int:
    """Check all replicas of a cluster, in the log directories of its nodes or over the network, also while brokers run.

    Exit status: 0 if nothing was found; 2 if there are findings; 3 if something could not be read.

    Parameters
    ----------
    directories
        the log directories (log.dirs) of all nodes, mounted or copied; wildcards work
    bootstrap_server
        host:port of one or more brokers: the loss ledger is read from the cluster and, without directories, all logs
        too
    acknowledged
        files of acknowledged records (`strandline produce --acknowledged FILE`), as JSON lines or Parquet: the audit
        looks for each of them
    topic
        check only these topics
    html
        write the report to this file, as one page
    limit
        the number of findings to print for each rule
    """
    if not directories and bootstrap_server is None:
        fail("nothing to audit", "name the log directories of all nodes, or --bootstrap-server", status=2)
    if limit < 1:
        misuse(f"--limit must be at least 1, not {limit}")
    servers = None if bootstrap_server is None else kafka_options(bootstrap_server, (), command_config)
    is_local = master is None or master.startswith("local")
    with spark_session(master, [*(local_conf() if is_local else ()), *conf], "pipeline audit") as spark:
        report = audited(spark, directories, servers, acknowledged, topic, limit)
    where = ", ".join(directories) if directories else f"all brokers of {bootstrap_server}"
    if html is not None:
        write(report, html, where)
    if json_output:
        print(json.dumps(report.as_json()))
    else:
        show(report)
    return report.status


def local_conf() -> list[str]:
    """The bytes are judged in Python, and what is left for the JVM is over before its best compiler has paid off."""
    from strandline_spark.spark import local_settings

    options = local_settings()["spark.driver.extraJavaOptions"]
    return [*LOCAL_CONF, f"spark.driver.extraJavaOptions={options} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"]


def audited(
    spark: "SparkSession",
    directories: Sequence[str],
    servers: Mapping[str, str] | None,  # `kafka.*` options of the cluster
    acknowledged: Sequence[str],
    topics: Sequence[str],
    limit: int,
) -> "AuditReport":
    from strandline_spark.jobs.audit.files import read_acknowledged, readable_directories
    from strandline_spark.jobs.audit.job import audit as run
    from strandline_spark.jobs.audit.ledger import as_rows
    from strandline_spark.jobs.audit.report import report_of, without_replicas
    from strandline_spark.progress import progress

    found = readable_directories(directories)
    if directories and not found.paths:
        fail(
            "no log directory can be read: " + "; ".join(found.unread),
            "run it as the user of the nodes, or name --bootstrap-server",
            status=3,
        )
    options = {"path": ",".join(found.paths)} if found.paths else dict(servers or {})
    options |= {"subscribe": ",".join(topics)} if topics else {}
    compacted = None if found.paths else compacted_topics(reached(servers))
    with ExitStack() as kept:
        kept.enter_context(progress(spark, "audit"))
        acks, unread = kept.enter_context(read_acknowledged(spark, acknowledged)) if acknowledged else (None, ())
        if acks is not None and topics:
            acks = acks.where(acks["topic"].isin(list(topics)))
        count = None if acks is None else acks.select("topic", "partition", "offset").distinct().count()
        losses = known_losses(found.paths, reached(servers) if servers else None)
        result = run(spark, options, acknowledged=acks, losses=as_rows(spark, losses.rows), compacted=compacted)
        missing = without_replicas(topics, result) if found.paths else ()  # brokers say themselves what is not there
        return report_of(result, limit, losses, (*found.unread, *unread, *missing), count)


def reached(servers: Mapping[str, str] | None) -> "ClientConfig":
    from strandline.client.config import ClientConfig

    return ClientConfig.of({"kafka.client.id": "strandline-audit", **(servers or {})})


def known_losses(directories: Sequence[str], bootstrap: "ClientConfig | None") -> "Losses":
    from strandline_spark.errors import StrandlineError
    from strandline_spark.jobs.audit.ledger import Losses, losses_in, losses_of

    own = losses_in(directories)
    if bootstrap is None:
        return own
    try:
        asked = losses_of(bootstrap)
    except StrandlineError as error:
        return Losses(own.rows, (*own.unread, error.problem))
    return Losses(tuple(dict.fromkeys((*asked.rows, *own.rows))), (*own.unread, *asked.unread))


def compacted_topics(bootstrap: "ClientConfig") -> list[str]:
    """Their logs may have gaps, and brokers clean them each at its own time."""
    from strandline.client.admin.topics import topic_configs

    return [name for name, values in topic_configs(bootstrap, "cleanup.policy").items() if "compact" in values]


def write(report: "AuditReport", html: str, where: str) -> None:
    from strandline_spark.jobs.audit.page import audit_page
    from strandline_spark.report import write_page

    try:
        write_page(html, audit_page(report, where))
    except OSError as error:
        fail(f"{html} cannot be written: {error.strerror}", "name another file with --html")


def show(report: "AuditReport") -> None:
    for row in report.findings:
        broker = "" if row["broker"] is None else f" on broker {row['broker']}"
        last = row["end"] - 1
        offsets = f"{row['offset']}" if last == row["offset"] else f"{row['offset']} to {last}"
        place = f"{row['topic']}-{row['partition']}{broker}"
        print(f"{row['severity']} {row['rule']}: {place}, offset {offsets}: {row['what']}")
    shown = {rule: sum(row["rule"] == rule for row in report.findings) for rule in report.counts}
    for rule, count in report.counts.items():
        if count > shown[rule]:
            print(f"{rule}: {count - shown[rule]:,} more")
    for one in report.unread:
        print(f"not read: {one}", file=sys.stderr)
    totals = report.totals
    sought = f", {report.acknowledged:,} acknowledged records sought" if report.acknowledged is not None else ""
    size = f"{totals['bytes'] / 1e6:,.1f} MB"
    print(f"{report.verdict} ({totals['replicas']:,} replicas of {totals['partitions']:,} partitions, {size}{sought})")
