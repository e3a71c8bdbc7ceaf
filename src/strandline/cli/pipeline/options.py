"""What all jobs have in common: where Spark runs, and errors that say what to do next."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from strandline.cli.connect import fail
from strandline.pipeline.errors import PipelineError, sentence_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Master = Annotated[str | None, Parameter(help="where Spark runs; local[*] if neither this nor spark-submit says")]
Conf = Annotated[Sequence[str], Parameter(name="--conf", negative="", help="a setting of Spark, key=value; repeatable")]

INTERRUPTED = 130


@contextmanager
def spark_session(master: str | None, conf: Sequence[str], app: str) -> Iterator["SparkSession"]:
    """A session for one command. Whatever fails in the block ends the command with a sentence, not with a traceback."""
    from strandline.pipeline.session import check_pyspark, session

    settings = dict(setting(entry) for entry in conf)
    try:
        check_pyspark()
    except PipelineError as error:
        fail(error.problem, error.advice)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        spark = session(master, settings, f"strandline {app}")
        try:
            yield spark
        finally:
            spark.stop()
    except KeyboardInterrupt:
        fail("interrupted", status=INTERRUPTED)
    except (PipelineError, PySparkException, Py4JError) as error:
        told = sentence_of(error)
        fail(told.problem, told.advice)


def setting(entry: str, flag: str = "--conf") -> tuple[str, str]:
    key, equals, value = entry.partition("=")
    if not (key and equals):
        fail(f"{flag} wants key=value, and got {entry!r}", status=2)
    return key, value
