"""`strandline demo pipeline`: events become a table while a leader is killed, and the pipeline too; then the audit."""

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

from confluent_kafka import KafkaException
from cyclopts import Parameter
from rich.console import Console

from strandline.cli.connect import Json, fail, misuse
from strandline.cli.signals import interrupted_by_signals
from strandline.client.librdkafka import why
from strandline.demo.demonstration import folder_for
from strandline.testing.local_cluster import LocalCluster, StartFailed
from strandline_spark.cli.options import require_folder_of, require_spark, write_report
from strandline_spark.errors import StrandlineError

NODES = 3


def pipeline_demo(
    *,
    seconds: float = 24.0,
    rate: int = 4000,
    partitions: int = 6,
    html: Annotated[Path, Parameter(help="write the report to this file")] = Path("pipeline-demo.html"),
    dir: Annotated[  # noqa: A002  # the option's name
        Path | None, Parameter(help="an empty folder for the cluster and the tables, which are kept")
    ] = None,
    json_output: Json = False,
) -> int:
    """Write a shop's events to three nodes, and make a table of them with `ingest`, through failures.

    The leader of a partition and `ingest` are killed (SIGKILL) meanwhile. At the end, `audit` reads all replicas, and
    every acknowledged event must be in the table or in quarantine, exactly once. This takes longer on a busy
    machine, but the number of events does not grow.

    Parameters
    ----------
    seconds
        how long to write
    rate
        events a second
    partitions
        number of partitions of the topic; the leader of the first one is killed
    """
    if seconds < 5 or rate < 1 or partitions < 1:
        misuse("--seconds must be at least 5, --rate and --partitions at least 1")
    require_folder_of(html, "--html")
    require_spark()
    interrupted_by_signals()
    from strandline_spark.demo.page import page
    from strandline_spark.demo.running import PipelineDemo

    folder = folder_for(dir, "strandline-pipeline-")
    console = Console(stderr=json_output)
    kept = f"Files kept for inspection in {folder}"
    try:
        with LocalCluster(folder / "cluster", NODES) as cluster:
            result = PipelineDemo(cluster, folder, console, seconds, rate, partitions).run()
            cluster.stop()
    except StrandlineError as error:
        fail(error.problem, error.advice or kept)
    except (KafkaException, StartFailed, OSError) as error:
        fail(why(error) if isinstance(error, KafkaException) else str(error), kept)
    write_report(html, page(result, rate))
    if json_output:
        print(json.dumps(result.as_json()))
    else:
        console.print(f"The audit of all replicas: {result.audit['verdict']}", soft_wrap=True)
        console.print(result.sentence(), soft_wrap=True)
    if result.holds and dir is None:
        shutil.rmtree(folder)
    elif not result.holds:
        print(kept, file=sys.stderr)
    return 0 if result.holds else 1
