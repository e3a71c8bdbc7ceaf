"""Partitions: who leads, who is in sync and eligible, how far each log is; their history, and what `explain` says."""

from typing import Any

from msgspec.structs import replace

from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.partitions import chosen as chosen_partitions
from strandline.client.admin.replica_logs import ReplicaLog
from strandline.client.cluster import Cluster
from strandline.client.errors import BadOption, StrandlineError
from strandline.console.changes.election import ELECTION
from strandline.console.chronicle import Moment
from strandline.console.facts import Facts, Observed
from strandline.console.table import Json, Rows
from strandline.console.view import INT32_MAX, Channel, Query, View, natural
from strandline.diagnosis import explaining
from strandline.diagnosis.partitions import as_json
from strandline.diagnosis.replica_logs import as_json as log_json

EPOCHS_MAX = 20  # the last leader epochs of a log
EPOCHS_PATIENCE_MS = 3000
LEADERLESS, UNDER_MIN_ISR, OUT_OF_SYNC, RECOVERING, MOVING = (
    "leaderless",
    "under-min-isr",
    "out-of-sync",
    "recovering",
    "moving",
)


def key(at: Place) -> str:
    return f"{at.topic}:{at.partition}"


def partition_rows(facts: Facts) -> Rows:
    return {key(state.at): {**as_json(state), "condition": condition(state)} for state in facts.partitions}


def condition(state: PartitionState) -> str:
    """The worst thing about it; empty if it is healthy."""
    if state.is_unavailable:
        return LEADERLESS
    if state.is_under_min_isr:
        return UNDER_MIN_ISR
    if state.adding or state.removing:
        return MOVING
    if set(state.replicas) - set(state.isr):
        return OUT_OF_SYNC
    return RECOVERING if state.is_recovering else ""


def log_rows(facts: Facts) -> Rows:
    """Of partitions that a browser shows: the high watermark, and what each replica has."""
    rows: dict[str, Json] = {}
    for at, reports in facts.logs.items():
        logs = [report for report in reports if isinstance(report, ReplicaLog)]
        rows[key(at)] = {
            "high_watermark": max((log.high_watermark for log in logs), default=-1),
            "log_start_offset": min((log.log_start_offset for log in logs), default=-1),
            "replicas": [log_json(report) for report in reports],
        }
    return rows


# --- one partition


def place_in(query: Query) -> Place:
    """Raises BadOption."""
    topic, given = query.get("topic", ""), query.get("partition", "")
    index = natural(given, INT32_MAX)
    if not topic or index is None:
        raise BadOption(f"'{topic}:{given}' is not TOPIC:PARTITION")
    return Place(topic, index)


def history(observed: Observed, query: Query) -> Json:
    """What the partition was since the console looks, and the leader epochs that its leader's log has."""
    at = place_in(query)
    epochs, why = epochs_of(observed, at)
    return {
        "moments": [moment_json(moment) for moment in observed.chronicle.of(at)],
        "epochs": epochs,
        "epochs_unknown": why,
    }


def moment_json(moment: Moment) -> dict[str, Any]:
    return {
        "time_ms": moment.time_ms,
        "leader": moment.leader,
        "leader_epoch": moment.leader_epoch,
        "isr": list(moment.isr),
        "elr": list(moment.elr),
        "last_known_elr": list(moment.last_known_elr),
        "is_first": moment.is_first,
    }


def epochs_of(observed: Observed, at: Place) -> tuple[list[dict[str, int]], str]:
    """The last first: each epoch in which records were written, and its offsets, half-open. The start of the last of
    many is unknown (-1). If the leader does not say, why."""
    state = next((state for state in observed.facts.partitions if state.at == at), None)
    if state is None or state.leader < 0:
        return [], "nobody leads the partition, and only a leader is asked"
    config = replace(observed.config, default_api_timeout_ms=EPOCHS_PATIENCE_MS)
    found: list[tuple[int, int]] = []  # epoch and end
    epoch = state.leader_epoch
    try:
        with Cluster(config) as cluster:
            while epoch >= 0 and len(found) <= EPOCHS_MAX:
                epoch, end = cluster.epoch_end(at.topic, at.partition, epoch)
                if epoch >= 0:
                    found.append((epoch, end))
                epoch -= 1
    except StrandlineError as error:
        return [], error.problem
    return spans(found, is_whole=epoch < 0), ""


def spans(found: list[tuple[int, int]], is_whole: bool) -> list[dict[str, int]]:
    """Each epoch begins where the one before it ended. `is_whole`: the last one is the first of the log."""
    starts = [*(end for _, end in found[1:]), 0 if is_whole else -1][: len(found)]
    rows = [{"epoch": epoch, "start": start, "end": end} for (epoch, end), start in zip(found, starts, strict=True)]
    return rows[:EPOCHS_MAX]


def explain(observed: Observed, query: Query) -> Json:
    """What `strandline explain` says of the partition."""
    at = place_in(query)
    states = chosen_partitions(observed.config, f"{at.topic}:{at.partition}")
    if not all(state.is_of_our_own for state in states):
        raise StrandlineError("this cluster does not report what its partitions wait for: it is not Strandline")
    (facts,) = explaining.gathered(observed.config, observed.options, states)
    return explaining.as_json(facts, explaining.judge(facts))


PARTITIONS = View(
    "partitions",
    "Partitions",
    channels=(
        Channel("partitions", ("partitions",), partition_rows),
        Channel("logs", ("logs",), log_rows),
    ),
    reads={"partition-history": history, "partition-explained": explain},
    changes={"election": ELECTION},
)
