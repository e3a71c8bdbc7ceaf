"""The sink's exactly-once protocol against a real node, with drivers that die, or wake up again, at each moment."""

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType
from spark.tests.sink.exactly_once import (
    MOMENTS,
    Died,
    Query,
    Stepping,
    at,
    committed_values,
    die,
    of_batches,
    rows_of,
    watched,
)
from tests.cluster.client_topics import create_topic
from tests.cluster.driving import until

from strandline.client.cluster import Cluster
from strandline.client.errors import ProduceFailed
from strandline.client.producing import Producer
from strandline.client.two_phase import begin, describe, end
from strandline.testing.local_cluster import LocalCluster
from strandline.wire.batch import build
from strandline_spark.errors import BadOption, BadRow, DataLoss, StrandlineError
from strandline_spark.sink.exactly_once import deciding, settling
from strandline_spark.sink.exactly_once.deciding import NotOpen
from strandline_spark.sink.exactly_once.journal import PARTITIONS, TOPIC, Journal, all_decisions, partition_of
from strandline_spark.sink.exactly_once.names import driver_id
from strandline_spark.sink.exactly_once.settling import settle
from strandline_spark.sink.exactly_once.task import Attempt, begun
from strandline_spark.sink.options import SinkOptions
from strandline_spark.sink.writer import BatchWriter, batch_writer, stream_writer
from strandline_spark.sink.writing import Writing

pytestmark = pytest.mark.timeout(120)
VALUE = StructType([StructField("value", StringType())])


@pytest.fixture
def query(broker: LocalCluster) -> Iterator[Query]:
    made = Query(broker, create_topic(broker.bootstrap))
    with closing(made.cluster):
        yield made


def options_of(query: Query, **more: str) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": query.nodes.bootstrap, "topic": query.topic}
    return {**given, "deliveryGuarantee": "exactly-once", **more}


def test_batches_are_committed_one_after_the_other_and_nothing_of_them_stays_open(query: Query) -> None:
    for version in range(3):
        assert query.batch(version).commit()
        assert query.open_ids() == []
        assert query.committed() == of_batches(*range(version + 1))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_driver_that_dies_at_any_moment_repeats_and_loses_no_row(query: Query, moment: str) -> None:
    query.batch(0).commit()
    with at(moment, die) as came, suppress(Died):
        query.batch(1).commit()
    assert came == [moment]
    query.restart()
    is_decided = moment not in ("entered", "taken", "recorded")
    assert query.batch(1).commit() is not is_decided, "whether it was decided follows from where it died"
    query.batch(2).commit()
    assert query.committed() == of_batches(0, 1, 2)
    assert query.open_ids() == []


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_driver_that_wakes_up_after_another_has_committed_the_batch_changes_nothing(
    query: Query, moment: str
) -> None:
    """A pause of one process, and the other is started with the same checkpoint meanwhile."""
    zombie = query.batch(0)
    query.restart()

    def another() -> None:
        query.batch(0).commit()
        query.batch(1).commit()

    with at(moment, another) as came, suppress(NotOpen):
        zombie.commit()
    assert came == [moment]
    query.batch(2).commit()
    assert query.committed() == of_batches(0, 1, 2)
    assert query.open_ids() == []


@pytest.mark.parametrize("moment", MOMENTS)
def test_settling_what_a_living_driver_decides_at_the_same_time_splits_no_batch(query: Query, moment: str) -> None:
    batch = query.batch(0)
    ids = [one.transactional_id for one in batch.prepared]
    decided: list[Any] = []
    with at(moment, lambda: decided.append(settle(query.cluster, query.name, ids))) as came, suppress(NotOpen):
        batch.commit()
    assert came == [moment] or moment not in ("entered", "taken", "recorded")
    query.restart()
    query.batch(0).commit()
    assert query.committed() == of_batches(0)
    assert query.open_ids() == []


@pytest.mark.parametrize("step", ["take_over", "Journal", "end"])
def test_a_driver_that_decides_while_its_transactions_are_being_settled_splits_no_batch(
    query: Query, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each step of `settle` the driver does all that it does."""
    batch = query.batch(0)
    ids = [one.transactional_id for one in batch.prepared]
    original = getattr(settling, step)

    def first(*args: Any, **how: Any) -> Any:
        monkeypatch.setattr(settling, step, original)
        with suppress(NotOpen):
            batch.commit()
        return original(*args, **how)

    monkeypatch.setattr(settling, step, first)
    settle(query.cluster, query.name, ids)
    assert query.committed() in ([], of_batches(0))
    query.restart()
    query.batch(0).commit()
    assert query.committed() == of_batches(0)


@pytest.mark.parametrize("first", ["take_over", "Journal"])
def test_an_abort_that_is_late_meets_no_decision_that_it_has_not_read(
    query: Query, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver takes over before a step of `settle`, and decides when that is about to abort: it has not committed
    yet. Were the steps of `settle` in the driver's order, decided rows would be aborted."""
    batch = query.batch(0)
    driver = Stepping(batch)
    with closing(Cluster(query.config)) as other, watched(driver.reached):

        def before(step: str, until: str) -> None:
            original = getattr(settling, step)

            def stepped(*args: Any, **how: Any) -> Any:
                monkeypatch.setattr(settling, step, original)
                driver.go(until)
                return original(*args, **how)

            monkeypatch.setattr(settling, step, stepped)

        before(first, "taken")
        before("end", "decided")
        settle(other, query.name, [one.transactional_id for one in batch.prepared])
        driver.go("end")
    assert query.committed() == of_batches(0)


def test_attempts_that_did_not_win_are_aborted_also_one_that_ends_after_the_commit(query: Query) -> None:
    loser = query.task(0, 0, 1, attempt=1)
    winner = query.task(0, 0, 1)
    query.write(0, winner).commit()
    assert query.committed() == [0, 1]
    late = query.task(0, 0, 1, attempt=2)
    assert query.open_ids() == [late.transactional_id]
    query.write(1, query.task(0, 10)).commit()
    assert query.committed() == [0, 1, 10]
    assert end(query.cluster, [loser, late], commit=True) != {}, "they are fenced"
    assert query.committed() == [0, 1, 10]


def test_an_attempt_with_the_number_of_another_leaves_what_that_has_prepared(query: Query) -> None:
    """A stage that Spark runs again counts its attempts anew."""
    first = query.task(0, 0)
    second = query.task(0, 0)
    assert first.transactional_id != second.transactional_id
    query.write(0, first).commit()
    assert query.committed() == [0]
    assert query.task(0, 1).transactional_id == first.transactional_id, "ids are used again"


def test_a_commit_that_fails_after_the_decision_is_finished_by_the_abort_that_spark_calls(query: Query) -> None:
    batch = query.batch(0)

    def fails() -> None:
        raise StrandlineError("no broker answers")

    with at("half", fails), pytest.raises(StrandlineError, match="no broker answers"):
        batch.commit()
    batch.abort()
    assert query.committed() == of_batches(0)


def test_an_abort_leaves_nothing_and_the_version_may_come_again(query: Query) -> None:
    query.task(0, 5, attempt=3)
    query.batch(0).abort()
    assert query.committed() == query.open_ids() == []
    query.batch(0).commit()
    assert query.committed() == of_batches(0)


def test_what_timed_out_before_it_was_decided_is_not_committed_in_part(broker: LocalCluster) -> None:
    query = Query(broker, create_topic(broker.bootstrap), transaction_timeout_ms="300")
    with closing(query.cluster):
        early = query.task(0, 0)
        until(lambda: query.open_ids() == [])
        batch = query.write(0, early, query.task(1, 1))
        with pytest.raises(NotOpen, match=r"transaction strandline-sink/\w+/\w+/0.0.0 is not open any more"):
            batch.commit()
        batch.abort()
        assert query.committed() == []


def test_a_task_that_takes_longer_than_its_timeout_names_that(broker: LocalCluster) -> None:
    query = Query(broker, create_topic(broker.bootstrap), transaction_timeout_ms="300")
    one = begun(query.cluster, Attempt(query.name, query.run, 0, 0), 300)
    with closing(query.cluster), Writing(query.cluster, ["value"], query.topic, "", one) as writing:
        writing.write(rows_of(1))
        writing.finish()
        until(lambda: query.open_ids() == [])
        writing.write(rows_of(2))
        with pytest.raises(ProduceFailed) as failed:
            writing.finish()
    assert "it was open for longer than kafka.transaction.timeout.ms" in failed.value.advice
    assert query.committed() == []


def test_decided_rows_that_were_given_up_are_reported_until_somebody_accepts_that(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "DECIDED_TIMEOUT_MS", 300)
    with at("half", die), suppress(Died):
        query.batch(0).commit()
    until(lambda: query.open_ids() == [])
    for _ in range(2):
        query.restart()
        with pytest.raises(DataLoss, match=f"version 0 of {query.name} was decided, and 1 of its 2 transactions"):
            query.batch(0).commit()
    settle(query.cluster, query.name, query.open_ids(), accept_losses=True)
    query.batch(1).commit()
    assert query.committed() == [0, 1, *of_batches(1)]


def test_a_decision_of_another_name_that_is_being_written_is_not_waited_for(query: Query) -> None:
    partition = partition_of(query.name, PARTITIONS)
    other = next(f"other-{n}" for n in range(1000) if partition_of(f"other-{n}", PARTITIONS) == partition)
    one = begin(query.cluster, driver_id(other), 60_000, two_phase=False)
    how = {"producer": one.producer, "transactional_id": one.transactional_id, "renews": False, "acks": -1}
    with Producer(query.cluster, **how) as producer:  # type: ignore[arg-type]
        record = build([(0, other.encode(), b"not a decision", ())])
        producer.send(TOPIC, partition, bytearray(record))
        producer.flush()
    try:
        query.batch(0).commit()
        assert query.committed() == of_batches(0)
    finally:
        end(query.cluster, [one], commit=False)
    assert query.name in all_decisions(query.cluster)


# --- writers, as Spark calls them


def rows(*values: int) -> Iterator[pa.RecordBatch]:
    yield rows_of()
    yield rows_of(*values)


def test_a_batch_write_with_a_name_counts_once_and_one_without_leaves_no_trace(query: Query) -> None:
    for expected in (False, True):
        writer = batch_writer(options_of(query, transactionName=query.name), VALUE, False)
        assert writer.is_decided is expected
        writer.commit([writer.write(rows(1, 2)), writer.write(rows(3))])
    assert query.committed() == [1, 2, 3]
    twin = BatchWriter(writer.options, "another-run")  # it was started before the first one had ended
    twin.commit([twin.write(rows(1, 2, 3))])
    assert query.committed() == [1, 2, 3]
    later = batch_writer(options_of(query, transactionName=query.name, transactionVersion="1"), VALUE, False)
    later.commit([later.write(rows(4))])
    plain = batch_writer(options_of(query), VALUE, False)
    plain.commit([plain.write(rows(5)), plain.write(iter(()))])
    assert query.committed() == [1, 2, 3, 4, 5]
    decisions = all_decisions(query.cluster)
    assert decisions[query.name].version == 1
    assert plain.run not in decisions


def test_a_named_write_that_died_after_its_decision_is_finished_by_the_next_before_any_task(query: Query) -> None:
    options = options_of(query, transactionName=query.name)
    writer = batch_writer(options, VALUE, False)
    with at("decided", die), suppress(Died):
        writer.commit([writer.write(rows(1))])
    assert batch_writer(options, VALUE, False).is_decided
    assert query.committed() == [1]


def test_a_task_that_fails_aborts_what_it_has_written(query: Query) -> None:
    writer = batch_writer(options_of(query), VALUE, False)

    def failing() -> Iterator[pa.RecordBatch]:
        yield rows_of(1)
        raise BadRow("a row is wrong")

    with pytest.raises(BadRow):
        writer.write(failing())
    assert committed_values(query.nodes, query.topic) == []
    writer.abort([None])


def test_brokers_that_do_not_allow_it_are_named_with_what_to_set(cluster3: LocalCluster) -> None:
    options = {"kafka.bootstrap.servers": cluster3.bootstrap, "topic": "t", "deliveryGuarantee": "exactly-once"}
    for make in (batch_writer, stream_writer):
        with pytest.raises(BadOption, match="the brokers do not allow them") as caught:
            make(options, VALUE, False)
        assert "transaction.two.phase.commit.enable=true" in caught.value.advice


def test_a_task_of_a_broker_that_does_not_allow_it_says_the_same(cluster3: LocalCluster) -> None:
    options = {"kafka.bootstrap.servers": cluster3.bootstrap, "topic": "t", "deliveryGuarantee": "exactly-once"}
    writer = BatchWriter(SinkOptions.of(options, VALUE), "run")
    with pytest.raises(BadOption, match="the brokers do not allow them"):
        writer.write(rows(1))


def test_the_coordinator_knows_when_a_transaction_is_given_up(query: Query) -> None:
    one = query.task(0, 1)
    assert describe(query.cluster, [one.transactional_id])[one.transactional_id].transaction_timeout_ms == 3_600_000
    with at("decided", die), suppress(Died):
        query.write(0, one).commit()
    week = describe(query.cluster, [one.transactional_id])[one.transactional_id].transaction_timeout_ms
    assert week == 7 * 86_400_000
    assert Journal(query.cluster, query.name).read() is not None
    settle(query.cluster, query.name, query.open_ids())
