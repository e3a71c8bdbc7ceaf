"""What `test_local_cluster` runs in a process of its own, since one process has one session: some of everything, on
executors that are processes of their own. What came of it goes out as JSON."""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import functions as F

from strandline_spark import session
from strandline_spark.jobs.histories import job as histories
from strandline_spark.jobs.simulate import job as simulate
from strandline_spark.jobs.simulate.code import code_version
from strandline_spark.jobs.simulate.definition import Campaign
from strandline_spark.jobs.simulate.engine import run_campaign


def main(master: str, bootstrap: str, topic: str, folder: Path) -> None:
    settings = {"spark.sql.shuffle.partitions": "2", "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    spark = session(master, settings)
    report: dict[str, object] = {}
    tasks = spark.sparkContext.parallelize(range(4), 4)
    report["executors"] = len(set(tasks.map(lambda _: os.environ["SPARK_EXECUTOR_DIRS"]).collect()))
    summary = run_campaign(Campaign(code_version()), range(18, 20), folder / "c", simulate.on_spark(spark), 1)
    report["campaign"] = [summary.seeds, summary.ok, summary.again, summary.is_complete]
    records = spark.read.format("strandline").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    totals = records.load().groupBy("partition").agg(F.count("offset").alias("n"), F.max("offset").alias("last"))
    report["topic"] = sorted(list(row) for row in totals.collect())
    rows = histories.judged_histories(histories.history_lines(spark, [str(folder / "history.jsonl")])).collect()
    report["history"] = {
        "violations": sum(row.name is not None and row.tolerated is None for row in rows),
        "problems": sum(row.problem is not None for row in rows),
        "operations": sum(row.operations or 0 for row in rows),
    }
    spark.stop()
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
