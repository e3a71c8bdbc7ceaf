"""What a user names, before Spark reads it: which log directories and acknowledgement files can be read at all."""

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.types import StringType, StructField, StructType

from strandline.base.ports import DiskError
from strandline.log.directory import META_PROPERTIES, parse_directory_name, read_meta
from strandline.server.storage.disk import RealDisk
from strandline_spark.jobs.audit.small_files import damaged_files
from strandline_spark.persisted import persisted
from strandline_spark.schemas import ACKNOWLEDGED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BROKEN = "_corrupt_record"


class Readable(NamedTuple):
    paths: tuple[str, ...]
    unread: tuple[str, ...]  # the others, each with the reason; and small files of these that are damaged


def readable_directories(directories: Sequence[str]) -> Readable:
    paths: dict[str, None] = {}
    unread = []
    for given in directories:
        matches = sorted(glob.glob(given)) if glob.has_magic(given) else [given]
        unread += [] if matches else [f"{given}: nothing matches"]
        for path in matches:
            why = why_unreadable(path)
            if why is None:
                if os.path.abspath(path) not in paths:
                    unread += damaged_files(path)
                paths[os.path.abspath(path)] = None
            else:
                unread.append(f"{path}: {why}")
    return Readable(tuple(paths), tuple(unread))


def why_unreadable(directory: str) -> str | None:
    """None if it is a log directory whose files may be read."""
    try:
        names = sorted(os.listdir(directory))
        logs = [name for name in names if parse_directory_name(name) is not None]
        if read_meta(RealDisk(), directory) is None:
            return f"it has no {META_PROPERTIES}, so it is not a log directory"
        closed = next((file for name in logs for file in closed_files(directory, name)), None)
        return None if closed is None else f"{closed} cannot be read"
    except FileNotFoundError:
        return "there is no such directory"
    except OSError as error:
        return error.strerror or str(error)
    except DiskError as error:
        return str(error)


def closed_files(directory: str, log: str) -> Iterator[str]:
    """Those that their owner keeps to himself. A broker may delete and rename files, and logs, at any moment; what else
    is wrong with one does not keep the others from being read."""
    try:
        names = sorted(os.listdir(f"{directory}/{log}"))
    except PermissionError:
        yield log
        return
    except OSError:
        return
    for name in names:
        try:
            os.close(os.open(f"{directory}/{log}/{name}", os.O_RDONLY | os.O_CLOEXEC))
        except PermissionError:
            yield f"{log}/{name}"
        except OSError:
            continue


@contextmanager
def read_acknowledged(spark: "SparkSession", paths: Sequence[str]) -> "Iterator[tuple[DataFrame, tuple[str, ...]]]":
    """schemas.ACKNOWLEDGED, of JSON lines or Parquet, read now and persisted as long as the block lasts; and what could
    not be read."""
    unread: list[str] = []
    rows = spark.createDataFrame([], ACKNOWLEDGED)
    with ExitStack() as kept, ExitStack() as texts:
        for given in paths:
            matches = sorted(glob.glob(given)) if glob.has_magic(given) else [given]
            unread += [] if matches else [f"{given}: nothing matches"]
            for path in matches:
                if not os.access(path, os.R_OK):
                    unread.append(f"{path}: {'cannot be read' if os.path.exists(path) else 'there is no such file'}")
                elif path.endswith(".parquet"):
                    found = spark.read.parquet(f"file://{os.path.abspath(path)}")
                    rows = rows.unionByName(found.select(*(name for name in ACKNOWLEDGED.names)))
                else:
                    text = texts.enter_context(persisted(json_lines(spark, path)))
                    bad = text.where(
                        f"{BROKEN} is not null or topic is null or partition is null or offset is null"
                    ).count()
                    unread += [f"{path}: {bad:,} lines are not valid"] if bad else []
                    rows = rows.unionByName(text.where(f"{BROKEN} is null and topic is not null").drop(BROKEN))
        held = kept.enter_context(persisted(rows.where("partition is not null and offset is not null")))
        held.count()
        texts.close()
        yield held, tuple(unread)


def json_lines(spark: "SparkSession", path: str) -> "DataFrame":
    schema = StructType([*ACKNOWLEDGED.fields, StructField(BROKEN, StringType())])
    return spark.read.schema(schema).json(f"file://{os.path.abspath(path)}")
