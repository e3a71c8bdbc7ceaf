"""The loss ledger as rows: what the cluster itself wrote down as lost, or perhaps lost.

All of it is known to a cluster that runs (`losses_of`). Log directories have only what their own brokers cut or missed
(`losses_in`): what unclean elections lost is in the metadata log.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from strandline.client.admin.loss_ledger import ask_ledger
from strandline.client.ask import Servers
from strandline.client.brokers import brokers_of, may_describe_cluster
from strandline.replica.hosting.ledger import FILE, LedgerFile, read
from strandline_spark.errors import StrandlineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "topic string, partition int, start long, end long, certainty int, cause string"


class Losses(NamedTuple):
    rows: tuple[tuple[str, int, int, int, int, str], ...]  # as `COLUMNS`; end −1: nobody knows
    unread: tuple[str, ...] = ()  # what could not be read, in words


def losses_in(directories: Iterable[str]) -> Losses:
    rows, unread = [], []
    for directory in directories:
        path = f"{directory}/{FILE}"
        book = LedgerFile()
        try:
            with open(path, "rb") as file:
                lines = read(book, file.read())
        except FileNotFoundError:
            continue
        except OSError as error:
            unread.append(f"{path}: {error.strerror}")
            continue
        if lines:
            unread.append(f"{path}: {len(lines)} lines are not valid")
        for lost, _ in book.entries:
            event = lost.event
            rows.append((lost.topic, lost.at.partition, event.start, event.end, event.certainty, event.cause))
    return Losses(tuple(rows), tuple(unread))


def losses_of(bootstrap: Servers) -> Losses:
    """Asks all brokers. Raises StrandlineError if none of `bootstrap` answers."""
    try:
        brokers = brokers_of(bootstrap)
    except StrandlineError as error:
        raise StrandlineError(f"no broker returned its loss ledger: {error.problem}") from None
    ledger = ask_ledger(brokers)
    unread = [f"broker {node} {why}" for node, why in ledger.silent.items()]
    unread += [
        f"log directory {path} of broker {node} is offline, and so is its loss ledger" for node, path in ledger.unread
    ]
    unread += [] if may_describe_cluster(bootstrap) else ["loss ledger: only topics that this user may describe"]
    unread += [f"{ledger.left_out} older entries of the loss ledger"] if ledger.left_out else []
    rows = ((one.topic, one.partition, one.start, one.end, one.certainty, one.cause) for one in ledger.losses)
    return Losses(tuple(rows), tuple(unread))


def as_rows(spark: "SparkSession", rows: Sequence[tuple[str, int, int, int, int, str]]) -> "DataFrame":
    return spark.createDataFrame(list(rows), COLUMNS)
