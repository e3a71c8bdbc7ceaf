"""The clusters that all tests share, by their names here, and a Spark session for the tests of two workers."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from spark.tests.sources import environment

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.spark import session

# Every JVM of the tests, those of commands too, lives for seconds: it starts a third faster with one compiler and one
# thread that collects garbage. Each batch of a stream starts twenty processes (Hadoop's readlink and chmod).
UNIT = Path(__file__).with_name("unit")
QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m -Djdk.lang.Process.launchMechanism=VFORK"
)
os.environ.setdefault("JDK_JAVA_OPTIONS", QUICK_JAVA)


def pytest_itemcollected(item: pytest.Item) -> None:
    if UNIT in item.path.parents:
        return  # these need neither Spark nor nodes, and no warning of theirs is ignored
    item.add_marker(pytest.mark.spark)
    item.add_marker(pytest.mark.filterwarnings("default"))  # PySpark's own
    if "spark" in getattr(item, "fixturenames", ()):
        # A worker that has a session keeps it: two of them, each with about half of the work.
        about = "audit" if item.path.name.startswith(("test_audit", "test_replica")) else "tables"
        item.add_marker(pytest.mark.xdist_group(f"spark-{about}"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["PYTHONPATH"] = environment()["PYTHONPATH"]  # Spark's workers import the tested sources too
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",  # one for all: a command has 1g
        # Without it each file of a checkpoint starts three processes that look for links.
        "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager",
    }
    running = session("local[2]", conf, "tests")
    yield running
    running.stop()


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left_persisted() -> Iterator[None]:
    """What a job has persisted and does not let go stays in the session of whoever called it."""
    yield
    running: Any = SparkSession.getActiveSession()
    if running is not None and not running._jsparkSession.sharedState().cacheManager().isEmpty():
        running.catalog.clearCache()
        pytest.fail("a DataFrame is left persisted")


@pytest.fixture(scope="session")
def broker(one_node: LocalCluster) -> LocalCluster:
    """One node that no test stops."""
    return one_node


@pytest.fixture(scope="session")
def cluster3(three_nodes: LocalCluster) -> LocalCluster:
    """Three nodes that no test stops."""
    return three_nodes
