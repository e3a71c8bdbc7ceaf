"""The Spark session that jobs, notebooks and tests share: local, or where `master` or spark-submit say."""

import importlib.resources
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from strandline_spark.errors import StrandlineError
from strandline_spark.java import choose_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYSPARK_MIN = (4, 2)  # admission control and Trigger.AvailableNow for sources in Python
LOCAL = "local[*]"
INSTALL = "pip install 'strandline[spark]'"

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.python.unix.domain.socket.enabled": "true",  # a third of what a task costs by TCP
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    "spark.driver.memory": "1g",
    "spark.python.daemon.module": "strandline_spark.workers",
}


def session(
    master: str | None = None, conf: Mapping[str, str] | None = None, app: str = "strandline"
) -> "SparkSession":
    """The session that runs, or a new one.

    `master` wins over everything; without it what spark-submit or PYSPARK_SUBMIT_ARGS say holds, then `local[*]`.
    `conf` wins over the settings that are made here. Raises StrandlineError if PySpark is missing or too old.
    """
    check_pyspark()
    from pyspark.sql import SparkSession

    running = running_session()
    if running is not None:
        return running
    wanted = dict(conf or {})
    chosen = master or wanted.pop("spark.master", None)
    if chosen is None and not is_submitted():
        chosen = LOCAL
    is_local = chosen is not None and chosen.startswith("local")
    prepare(is_local=is_local)
    builder = SparkSession.builder.appName(app)
    if chosen is not None:
        builder = builder.master(chosen)
    for key, value in {**SETTINGS, **(local_settings() if is_local else {}), **wanted}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def running_session() -> "SparkSession | None":
    """Also one that another thread has made."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return None if SparkContext._active_spark_context is None else SparkSession.active()


def check_pyspark() -> None:
    try:
        from pyspark import __version__ as version
    except ImportError:
        raise StrandlineError("the pipeline needs PySpark, which is not installed", INSTALL) from None
    if tuple(int(part) for part in version.split(".")[:2]) < PYSPARK_MIN:
        least = ".".join(map(str, PYSPARK_MIN))
        raise StrandlineError(f"PySpark {version} is too old: at least {least} is needed", INSTALL)


def is_submitted() -> bool:
    """Has somebody else chosen where Spark runs: spark-submit, whose JVM runs already, or the arguments for ours?"""
    return "PYSPARK_GATEWAY_PORT" in os.environ or "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")


def prepare(*, is_local: bool) -> None:
    """The environment of the JVM and of Spark's Python workers."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        choose_java()
    if is_local:
        # Workers would take any python3 of the PATH, and the driver the address of any network card.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def local_settings() -> dict[str, str]:
    quiet = Path(str(importlib.resources.files(__package__) / "log4j2.properties"))
    return {**LOCAL_SETTINGS, "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={shlex.quote(str(quiet))}"}
