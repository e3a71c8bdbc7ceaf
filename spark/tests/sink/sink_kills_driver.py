"""A driver that `sink_kills` kills: `python -m … stream|batch MASTER BOOTSTRAP TOPIC ROWS CHECKPOINT`.

A stream reads ROWS, a folder, file by file, each of them a micro-batch; a batch writes all of it, under its name.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from spark.tests.sink.sink_kills_source import DRIVER, KilledSink, control

from strandline_spark import session

PARTITIONS = 3
SETTINGS = {
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.task.maxFailures": "8",
}


def main(mode: str, master: str, bootstrap: str, topic: str, rows: str, checkpoint: str) -> None:
    spark = session(master, SETTINGS)
    gateway: Any = spark.sparkContext._gateway
    (control() / DRIVER).write_text(f"{os.getpid()} {gateway.proc.pid}")
    spark.dataSource.register(KilledSink)
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "topic": topic,
        "deliveryGuarantee": "exactly-once",
        "kafka.batch.size": "1000",
        "kafka.default.api.timeout.ms": "30000",
    }
    if mode == "batch":
        named = {"transactionName": Path(rows).name}
        found = spark.read.text(rows).repartition(PARTITIONS)
        found.write.format("killed").options(**options, **named).mode("append").save()
        return
    stream = spark.readStream.option("maxFilesPerTrigger", 1).text(rows).repartition(PARTITIONS)
    query = stream.writeStream.format("killed").options(**options).option("checkpointLocation", checkpoint)
    while True:  # a commit that dies ends the query, and not its driver
        with suppress(StreamingQueryException):
            query.trigger(processingTime="200 milliseconds").start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
