"""One attempt of a task: its rows, in a transaction that stays open when it ends."""

from contextlib import suppress
from typing import Any, NamedTuple

from msgspec.structs import replace

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import KafkaError
from strandline.client.two_phase import Begun, begin, describe, end
from strandline.txn.states import IDLE
from strandline_spark.errors import StrandlineError
from strandline_spark.sink.exactly_once.names import task_id
from strandline_spark.sink.exactly_once.starting import why_not

SLOTS_MAX = 100
IDLE_STATES = tuple(state.named for state in IDLE)
ABORT_PATIENCE_MS = 5_000
QUERY_ID, RUN_ID = "sql.streaming.queryId", "spark.jobGroup.id"  # Spark sets them for each task of a query


class Attempt(NamedTuple):
    """Whose transaction it is."""

    name: str
    run: str
    partition: int
    attempt: int


def begun(cluster: Cluster, of: Attempt, timeout_ms: int) -> Begun:
    """A transaction for this attempt. If a stage is run again its attempts are counted anew, and another one with the
    same number may have prepared what Spark has accepted: so what is open is left alone, and the next slot is taken.
    Raises `KafkaError`, BadOption."""
    try:
        for slot in range(SLOTS_MAX):
            name = task_id(of.name, of.run, of.partition, of.attempt, slot)
            row = describe(cluster, [name]).get(name)
            if row is None or row.transaction_state in IDLE_STATES:
                return begin(cluster, name, timeout_ms)
    except KafkaError as error:
        raise why_not(error) or error from None
    raise StrandlineError(
        f"partition {of.partition} has {SLOTS_MAX} open transactions of attempt {of.attempt} in this run",
        f"`strandline pipeline settle --name {of.name}` ends them",
    )


def give_up(config: ClientConfig, one: Begun) -> None:
    """The attempt has failed: abort what it has written, if brokers can be asked. If not, its driver does that."""
    with suppress(KafkaError), Cluster(replace(config, default_api_timeout_ms=ABORT_PATIENCE_MS)) as cluster:
        end(cluster, [one], commit=False)


def attempt_of(name: str | None, run: str) -> Attempt:
    """This task, by what Spark says of it. Without a `name`: a streaming query's. Raises StrandlineError."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    if context is None:
        return Attempt(name or run, run, 0, 0)
    if name is None:
        name = context.getLocalProperty(QUERY_ID)
        run = context.getLocalProperty(RUN_ID) or run
        if name is None:
            raise StrandlineError(
                f"deliveryGuarantee=exactly-once: Spark does not tell its tasks which query they run ({QUERY_ID})",
                "this version of Spark is not supported",
            )
    return Attempt(name, run, context.partitionId(), context.attemptNumber())
