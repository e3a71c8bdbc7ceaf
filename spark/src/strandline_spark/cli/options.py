"""What all jobs have in common: where Spark runs, and errors that say what to do next."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from strandline.base.ports import DiskError
from strandline.cli.connect import fail, misuse, properties_in
from strandline_spark.errors import StrandlineError, sentence_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Master = Annotated[str | None, Parameter(help="the master URL of Spark; default: the one of spark-submit, or local[*]")]
Conf = Annotated[
    Sequence[str],
    Parameter(name="--conf", negative="", show_default=False, help="a Spark setting, key=value; repeatable"),
]
Options = Annotated[
    Sequence[str],
    Parameter(
        name="--option",
        negative="",
        show_default=False,
        help="a Kafka client option, key=value, such as security.protocol=SSL; repeatable",
    ),
]

INTERRUPTED = 130
PAGES_OF_JSON = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")  # what PySpark says of SQL that is wrong
DISK_ADVICE = "check that the folder exists, is writable and has free space"


def require_spark() -> None:
    """Ends the command, with what to install, if PySpark is missing or too old."""
    from strandline_spark.spark import check_pyspark

    try:
        check_pyspark()
    except StrandlineError as error:
        fail(error.problem, error.advice)


@contextmanager
def spark_session(master: str | None, conf: Sequence[str], app: str) -> Iterator["SparkSession"]:
    """A session for one command; one that runs already is left running. Whatever fails in the block ends the command
    with a sentence, not with a traceback."""
    from strandline_spark.spark import running_session, session

    settings = dict(setting(entry) for entry in conf)
    require_spark()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    logging.getLogger().addHandler(logging.NullHandler())  # py4j's tracebacks; the error is printed below
    for name in PAGES_OF_JSON:
        PySparkLogger.getLogger(name).disabled = True
    is_ours = running_session() is None
    try:
        spark = session(master, settings, f"strandline {app}")
        try:
            yield spark
        finally:
            if is_ours:
                spark.stop()
    except KeyboardInterrupt:
        fail("interrupted", "the same command goes on where it was", status=INTERRUPTED)
    except (StrandlineError, PySparkException, Py4JError) as error:
        sentence = sentence_of(error)
        fail(sentence.problem, sentence.advice)
    except OSError as error:
        fail(of_disk(error), DISK_ADVICE)
    except DiskError as error:
        fail(str(error), DISK_ADVICE)


def require_folder_of(path: Path | None, flag: str) -> None:
    """Ends the command before its work, if what comes of it could not be written in the end."""
    if path is not None and not path.parent.is_dir():
        fail(
            f"{flag} {path} cannot be written: there is no folder {path.parent}",
            "create the folder, or name another file",
        )


def of_disk(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}"


def write_report(path: Path, markup: str) -> None:
    from strandline_spark.report import write_page

    try:
        write_page(path, markup)
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}", "name another file")
    print(f"report: {path}", file=sys.stderr)


def setting(entry: str, flag: str = "--conf") -> tuple[str, str]:
    key, equals, value = entry.partition("=")
    if not (key and equals):
        misuse(f"{flag} must be key=value, not {entry!r}")
    return key, value


def kafka_options(bootstrap: str, entries: Sequence[str], command_config: Path | None = None) -> dict[str, str]:
    """The connector's `kafka.*` options from --bootstrap-server, --command-config and --option, which goes before the
    file; the prefix may be left out."""
    named = dict(properties_in(command_config)) if command_config is not None else {}
    named |= dict(setting(entry, "--option") for entry in entries)
    given = {key if key.startswith("kafka.") else f"kafka.{key}": value for key, value in named.items()}
    return {**given, "kafka.bootstrap.servers": bootstrap}
