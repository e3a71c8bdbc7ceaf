"""Transactions as JSON and in words, and what is wrong with one that keeps readers waiting."""

from typing import Any

from strandline.client.admin.open_transactions import Held
from strandline.client.admin.transactions import Coordinated, Listed, ProducerAt, Uncertain
from strandline.client.two_phase import SINK_IDS
from strandline.diagnosis.loss_words import when
from strandline.diagnosis.situation import Facts, Finding, WayOut
from strandline.txn.states import State
from strandline.txn.transaction import NEVER_TIMES_OUT


def listed_json(row: Listed) -> dict[str, Any]:
    return {
        "transactional_id": row.transactional_id,
        "coordinator": row.coordinator,
        "producer_id": row.producer_id,
        "state": row.state,
    }


def coordinated_json(row: Coordinated, now_ms: int) -> dict[str, Any]:
    is_open = row.started_at >= 0 and row.state not in ("Empty", "CompleteCommit", "CompleteAbort")
    return {
        "coordinator": row.coordinator,
        "transactional_id": row.transactional_id,
        "producer_id": row.producer_id,
        "producer_epoch": row.producer_epoch,
        "state": row.state,
        "timeout_ms": row.timeout_ms,
        "started_at_ms": row.started_at if is_open else None,
        "duration_ms": now_ms - row.started_at if is_open else None,
        "partitions": [str(at) for at in row.places],
    }


def producer_json(row: ProducerAt) -> dict[str, Any]:
    return {
        "topic": row.at.topic,
        "partition": row.at.partition,
        "producer_id": row.producer_id,
        "producer_epoch": row.epoch,
        "coordinator_epoch": row.coordinator_epoch,
        "last_sequence": row.last_sequence,
        "last_timestamp_ms": row.last_timestamp,
        "start_offset": row.start_offset if row.is_open else None,
    }


def hanging_json(row: ProducerAt, now_ms: int) -> dict[str, Any]:
    return {**producer_json(row), "duration_ms": now_ms - row.last_timestamp}


def held_json(held: Held | None) -> dict[str, Any] | None:
    if held is None:
        return None
    known = held.known
    return {
        **producer_json(held.producer),
        "last_stable_offset": held.last_stable_offset,
        "high_watermark": held.high_watermark,
        "transactional_id": known.transactional_id if isinstance(known, Coordinated) else None,
        "state": known.state if isinstance(known, Coordinated) else None,
        "started_at_ms": known.started_at if isinstance(known, Coordinated) else None,
        "is_hanging": known is None,
    }


# --- what holds up readers


def judge_held(facts: Facts) -> tuple[Finding, ...]:
    """Readers wait for the end of a transaction. That needs an operator only if nobody is going to end it."""
    held = facts.held
    if held is None:
        return ()
    one, known = held.producer, held.known
    count = held.high_watermark - held.last_stable_offset
    what = f"a transaction of producer {one.producer_id} holds the last stable offset at {held.last_stable_offset}"
    why = (
        f"read_committed consumers do not see what follows, {count} offset{'' if count == 1 else 's'} up to the high"
        f" watermark {held.high_watermark}",
        f"it is open since offset {one.start_offset}; producer {one.producer_id} with epoch {one.epoch} wrote last at"
        f" {when(one.last_timestamp)}",
    )
    if isinstance(known, Coordinated):
        return (Finding(what, (*why, coordinated_words(known)), end_of(known)),)
    if isinstance(known, Uncertain):
        return (Finding(what, (*why, f"its transactional id is not known: {known.why}"), is_missing=True),)
    unknown = "it hangs: its coordinator does not know it in this partition, so nobody is going to end it"
    return (Finding(what, (*why, unknown), needs_action=True, ways=(abort(one, facts.options),)),)


def abort(one: ProducerAt, options: str) -> WayOut:
    place = f"--topic {one.at.topic} --partition {one.at.partition}"
    return WayOut(
        "abort it in this partition",
        "its records here: read_committed consumers never see them",
        f"strandline transactions abort {place} --start-offset {one.start_offset}{options}",
    )


def coordinated_words(known: Coordinated) -> str:
    """Who, and since when."""
    return (
        f"transactional id '{known.transactional_id}': {known.state} since {when(known.started_at)}, as its"
        f" coordinator, broker {known.coordinator}, knows it"
    )


def end_of(known: Coordinated) -> str:
    if known.state != State.ONGOING.named:
        return f"its marker: broker {known.coordinator} has decided, and writes it"
    until = when(known.started_at + known.timeout_ms)
    if known.transactional_id.startswith(f"{SINK_IDS}/"):
        return (
            "the driver of an exactly-once sink in Spark to commit or abort it. If that is not running: start its query"
            f" again, or run `strandline pipeline settle`; its coordinator aborts it after {until}"
        )
    if known.timeout_ms >= NEVER_TIMES_OUT:
        return "whoever has prepared it (two-phase commit): it never times out"
    return f"its producer to end it; else it is aborted after {until}, its timeout"
