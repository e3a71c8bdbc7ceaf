"""`strandline leader-election`: have leaders elected now, as kafka-leader-election does."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from strandline.base.errors import ErrorCode
from strandline.cli.cluster import ask_any
from strandline.cli.connect import DEFAULT_BOOTSTRAP, Bootstrap, fail
from strandline.cli.partitions_file import by_topic, read_partitions
from strandline.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

TYPES = {"preferred": 0, "unclean": 1}


def leader_election(
    *,
    election_type: Literal["preferred", "unclean"],
    topic: str | None = None,
    partition: int | None = None,
    all_topic_partitions: Annotated[bool, Parameter(negative="")] = False,
    path_to_json_file: Path | None = None,
    yes: Annotated[bool, Parameter(negative="")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Elect leaders: the first replica of each partition, or, where nobody leads, any that lives.

    Parameters
    ----------
    election_type
        preferred loses nothing; unclean loses what only replicas that are dead or behind had
    topic
        of one partition
    partition
        of that topic
    all_topic_partitions
        of all topics
    path_to_json_file
        {"partitions": [{"topic": "t", "partition": 0}]}
    yes
        do not ask before an unclean election
    """
    ways = (topic is not None, all_topic_partitions, path_to_json_file is not None)
    if sum(ways) != 1 or (topic is None) != (partition is None):
        fail("name --topic and --partition, or --path-to-json-file, or --all-topic-partitions", status=2)
    rows: tuple[TopicPartitions, ...] | None = None
    if topic is not None and partition is not None:
        rows = (TopicPartitions(topic=topic, partitions=(partition,)),)
    elif path_to_json_file is not None:
        named = by_topic(read_partitions(path_to_json_file))
        rows = tuple(
            TopicPartitions(topic=t, partitions=tuple(r["partition"] for r in group)) for t, group in named.items()
        )
    if election_type == "unclean" and not yes:
        confirm()
    answer = ask_any(bootstrap, ElectLeadersRequest(election_type=TYPES[election_type], topic_partitions=rows), 2)
    failed = []
    for result in answer.replica_election_results:
        for row in result.partition_result:
            name, error = f"{result.topic}-{row.partition_id}", ErrorCode(row.error_code)
            if error is ErrorCode.NONE:
                print(f"{name}: a leader was elected")
            elif error is ErrorCode.ELECTION_NOT_NEEDED:
                print(f"{name}: has the leader that it should have")
            else:
                failed.append(f"{name}: {row.error_message or error.name}")
    if failed:
        fail("; ".join(failed))


def confirm() -> None:
    """An unclean election is the one thing here that can lose records."""
    if not sys.stdin.isatty():
        fail("an unclean election may lose records", "say --yes if that is what you want", status=2)
    if input("An unclean election may lose records that were acknowledged. Go on? [y/N] ").strip().lower() != "y":
        fail("nothing was done")
