"""`strandline pipeline settle`, on what drivers that died have left."""

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from spark.tests.sink.exactly_once import Died, Query, at, die, of_batches
from tests.cluster.client_topics import create_topic
from tests.printed import hold

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.cli.settle import settle

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def query(broker: LocalCluster) -> Iterator[Query]:
    made = Query(broker, create_topic(broker.bootstrap))
    with closing(made.cluster):
        yield made


def ran(query: Query, capsys: pytest.CaptureFixture[str], minutes: float = 0, **how: Any) -> list[tuple[str, str]]:
    """What it says of each transaction: task and fate."""
    bootstrap = query.nodes.bootstrap
    assert settle(name=[query.name], older_than_minutes=minutes, bootstrap=bootstrap, json_output=True, **how) == 0
    output = capsys.readouterr().out
    hold(["pipeline", "settle", "--json"], output)
    rows = json.loads(output)
    assert {row["name"] for row in rows} <= {query.name}
    return [(row["transactional_id"].rpartition("/")[2], row["fate"]) for row in rows]


def test_what_was_not_decided_is_aborted_and_a_dry_run_only_says_so(
    query: Query, capsys: pytest.CaptureFixture[str]
) -> None:
    query.batch(0)
    for _ in range(2):
        assert ran(query, capsys, dry_run=True) == [("0.0.0", "abort"), ("1.0.0", "abort")]
    assert len(query.open_ids()) == 2
    assert ran(query, capsys) == [("0.0.0", "abort"), ("1.0.0", "abort")]
    assert ran(query, capsys) == []
    assert query.committed() == []


def test_what_was_decided_is_committed_and_the_rest_aborted(query: Query, capsys: pytest.CaptureFixture[str]) -> None:
    loser = query.task(0, 0, 1, attempt=1)
    with at("half", die), suppress(Died):
        query.batch(0).commit()
    assert loser.transactional_id in query.open_ids()
    assert ran(query, capsys) == [("0.1.0", "abort"), ("1.0.0", "commit")]
    assert query.committed() == of_batches(0)
    query.restart()
    assert not query.batch(0).commit()
    assert query.committed() == of_batches(0)


def test_a_decision_that_nobody_has_recorded_as_done_is_recorded(
    query: Query, capsys: pytest.CaptureFixture[str]
) -> None:
    with at("committed", die), suppress(Died):
        query.batch(0).commit()
    bootstrap = query.nodes.bootstrap
    assert settle(name=[query.name], older_than_minutes=0, bootstrap=bootstrap) == 0
    assert f"{query.name}: recorded as committed" in capsys.readouterr().out
    assert settle(name=[query.name], older_than_minutes=0, bootstrap=bootstrap) == 0
    assert capsys.readouterr().out == "no open transactions\n"


def test_what_is_young_is_left_alone(query: Query, capsys: pytest.CaptureFixture[str]) -> None:
    batch = query.batch(0)
    assert ran(query, capsys, minutes=15) == [("0.0.0", "wait"), ("1.0.0", "wait")]
    batch.commit()
    assert query.committed() == of_batches(0)


def test_a_cluster_without_such_sinks_has_nothing_to_end(
    cluster3: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert settle(bootstrap=cluster3.bootstrap) == 0
    assert "no open transactions" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        settle(older_than_minutes=-1, bootstrap=cluster3.bootstrap)
    assert "--older-than-minutes must not be negative" in capsys.readouterr().err
