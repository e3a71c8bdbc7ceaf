"""The process that Spark forks its workers from."""

import subprocess
import sys

from spark.tests.sources import environment

FORKS = """
import os, random, sys, threading
from strandline_spark import workers
workers.preload("pyspark.sql.worker.plan_data_source_read")
print(sorted({"pandas", "pyarrow", "strandline_spark.topic.batch", sys.argv[1]} - set(sys.modules)))
workers.preload("no.such.worker")
numbers = sys.modules["numpy.random"]
print(threading.active_count(), flush=True)
for _ in range(2):
    if os.fork() == 0:
        print(numbers.random(), random.random(), flush=True)
        os._exit(0)
    os.wait()
"""


def test_forks_have_imported_everything_and_draw_numbers_of_their_own() -> None:
    command = [sys.executable, "-c", FORKS, "pyspark.sql.worker.plan_data_source_read"]
    printed = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout
    missing, threads, one, other = printed.splitlines()
    assert (missing, threads) == ("[]", "1")
    assert not set(one.split()) & set(other.split())
