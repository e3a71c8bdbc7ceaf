"""A leader's service: appends, Fetch, FetchSnapshot, BeginQuorumEpoch, and the advance of the high watermark.

Invariants:
  - a replica's progress is what its own Fetch claims, in this epoch, after its log was found to match ours;
  - a parked Fetch is answered when there is data behind its offset, when the high watermark has moved, or in time;
  - at most one Fetch of a replica is parked.
"""

from collections.abc import Sequence
from typing import Any

from strandline.base.effects import Received, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.time import Instant, after
from strandline.quorum import messages, voting
from strandline.quorum.ports import EpochEnd, SnapshotId
from strandline.quorum.roles import Leader, Parked, Progress
from strandline.quorum.state import QuorumState
from strandline.wire.batch import Draft, build

OBSERVERS_MAX = 10_000  # replicas whose progress is kept
FIRST_VERSION_WITH_HIGH_WATERMARK = 18


def append(quorum: QuorumState, role: Leader, records: Sequence[bytes], now: Instant) -> int:
    assert records, "a batch has records"
    assert quorum.log.log_end_offset > role.epoch_start_offset
    drafts: list[Draft] = [(now, None, record, ()) for record in records]
    batch = build(drafts, base_offset=quorum.log.log_end_offset, leader_epoch=quorum.epoch)
    assert len(batch) <= quorum.config.batch_bytes_max, "the writer keeps its batches small"
    quorum.log.append_as_leader(batch)
    return quorum.log.log_end_offset - 1


def drive(quorum: QuorumState, role: Leader, now: Instant) -> None:
    """What has become due, or possible, since the last event."""
    assert role is quorum.role
    advance(quorum, role)
    end = quorum.log.log_end_offset
    for replica, waiting in list(role.parked.items()):
        if waiting.offset < end or waiting.known_high_watermark < quorum.high_watermark:
            del role.parked[replica]
            answer_fetch(quorum, role, replica, waiting.to, waiting.offset, now)
    voting.send_begin(quorum, role, now)


def advance(quorum: QuorumState, role: Leader) -> None:
    committed = role.committed(quorum.durability.end)  # guard: leader-counts-unsynced-records
    if committed is not None and committed > quorum.high_watermark:
        quorum.commit_to(committed)


# --- Fetch


def fetch(quorum: QuorumState, received: Received, now: Instant) -> None:
    request = received.message
    if request.cluster_id != quorum.cluster_id:
        quorum.reply(received, messages.fetch_refused(ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    asked = messages.only_partition(request.topics)
    if asked is None:
        quorum.reply(received, messages.fetch_refused(ErrorCode.INVALID_REQUEST))
        return
    match quorum.role:
        case Leader() as role:
            refused = why_epoch_refused(quorum, asked.current_leader_epoch) or why_fetch_malformed(request, asked)
            if refused is None:
                fetched(quorum, role, received, asked, now)
                return
        case _:
            refused = why_epoch_refused(quorum, asked.current_leader_epoch) or ErrorCode.NOT_LEADER_OR_FOLLOWER
    quorum.reply(received, messages.fetch_response(refused, quorum.leading))


def why_epoch_refused(quorum: QuorumState, epoch: int) -> ErrorCode | None:
    if epoch == quorum.epoch:
        return None
    return ErrorCode.FENCED_LEADER_EPOCH if epoch < quorum.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH


def why_fetch_malformed(request: Any, asked: Any) -> ErrorCode | None:
    if request.max_wait_ms < 0 or asked.fetch_offset < 0:
        return ErrorCode.INVALID_REQUEST
    if asked.last_fetched_epoch < 0 or asked.last_fetched_epoch > asked.current_leader_epoch:
        return ErrorCode.INVALID_REQUEST
    return None


def fetched(quorum: QuorumState, role: Leader, received: Received, asked: Any, now: Instant) -> None:
    """A sound Fetch of our epoch."""
    assert role is quorum.role
    assert asked.current_leader_epoch == quorum.epoch
    request, offset = received.message, asked.fetch_offset
    mismatch = why_log_differs(quorum, offset, asked.last_fetched_epoch)
    replica = NodeId(max(request.replica_state.replica_id, request.replica_id))
    hear(quorum, role, replica, now)
    progress = role.progress.get(replica)
    if mismatch is not None:
        diverging = mismatch if isinstance(mismatch, EpochEnd) else None
        snapshot = mismatch if isinstance(mismatch, SnapshotId) else None
        quorum.reply(
            received,
            messages.fetch_response(
                ErrorCode.NONE,
                quorum.leading,
                high_watermark=quorum.high_watermark,
                log_start_offset=quorum.log.log_start_offset,
                diverging=diverging,
                snapshot=snapshot,
            ),
        )
        return
    known = quorum.high_watermark
    if progress is not None:
        progress.directory_id = asked.replica_directory_id
        progress.end_offset = offset
        advance(quorum, role)  # first, so that the answer has the high watermark that this very Fetch moves
        if offset >= quorum.log.log_end_offset:
            progress.last_caught_up = now
        known = progress.sent_high_watermark
        if received.to.api_version >= FIRST_VERSION_WITH_HIGH_WATERMARK:
            known = min(asked.high_watermark, quorum.high_watermark)
    assert known <= quorum.high_watermark, "nobody hears of more than is committed"
    is_news = offset < quorum.log.log_end_offset or known < quorum.high_watermark
    before = role.parked.pop(replica, None)
    if before is not None:  # its connection is gone, or will be answered in order
        answer_fetch(quorum, role, replica, before.to, before.offset, now)
    if is_news or request.max_wait_ms == 0 or progress is None:
        answer_fetch(quorum, role, replica, received.to, offset, now)
        return
    wait_ms = min(request.max_wait_ms, quorum.config.fetch_wait_ms_max)
    role.parked[replica] = Parked(received.to, offset, known, after(now, wait_ms))


def why_log_differs(quorum: QuorumState, offset: int, epoch: int) -> EpochEnd | SnapshotId | None:
    """Where does a log that ends at `offset` with a record of `epoch` part from ours? None: it is a prefix of ours.
    A snapshot if ours no longer reaches back so far."""
    assert offset >= 0
    log = quorum.log
    if offset == 0 and epoch == 0 and log.log_start_offset == 0:
        return None
    earliest = log.earliest_snapshot()
    if earliest is not None and is_behind_log(offset, epoch, log.log_start_offset, earliest):
        return log.latest_snapshot()
    end = log.end_of_epoch(epoch)
    return end if end.epoch != epoch or end.end_offset < offset else None  # guard: divergent-metadata-unnoticed


def is_behind_log(offset: int, epoch: int, start: int, earliest: SnapshotId) -> bool:
    if start == 0:
        return False
    return offset < start or (offset == start and epoch != earliest.epoch) or epoch < earliest.epoch


def hear(quorum: QuorumState, role: Leader, replica: NodeId, now: Instant) -> None:
    """A replica asks us for something, so it knows that we lead."""
    assert role is quorum.role
    if replica < 0 or replica == quorum.me:
        return
    if replica not in role.progress:
        if len(role.progress) >= OBSERVERS_MAX:
            return
        role.progress[replica] = Progress(quorum.directory_id)
    role.progress[replica].last_fetch = now
    role.begin.again(replica, after(now, quorum.config.fetch_timeout_ms // 2))


def answer_fetch(quorum: QuorumState, role: Leader, replica: NodeId, to: ReplyTo, offset: int, now: Instant) -> None:
    assert offset >= 0
    progress = role.progress.get(replica)
    if progress is not None:
        progress.sent_high_watermark = quorum.high_watermark
    records = quorum.log.read(offset, quorum.config.fetch_bytes_max)
    message = messages.fetch_response(
        ErrorCode.NONE,
        quorum.leading,
        high_watermark=quorum.high_watermark,
        log_start_offset=quorum.log.log_start_offset,
        records=b"" if records is None else records,
    )
    quorum.out.append(Reply(to, message))


def release_expired(quorum: QuorumState, role: Leader, now: Instant) -> None:
    assert role is quorum.role
    for replica, waiting in list(role.parked.items()):
        if waiting.until <= now:
            del role.parked[replica]
            answer_fetch(quorum, role, replica, waiting.to, waiting.offset, now)


# --- FetchSnapshot


def fetch_snapshot(quorum: QuorumState, received: Received, now: Instant) -> None:
    request = received.message
    if request.cluster_id != quorum.cluster_id:
        quorum.reply(received, messages.snapshot_refused(ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    asked = messages.only_partition(request.topics)
    if asked is None:
        quorum.reply(received, messages.snapshot_refused(ErrorCode.INVALID_REQUEST))
        return
    snapshot = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    match quorum.role:
        case Leader() as role:
            refused = why_epoch_refused(quorum, asked.current_leader_epoch)
            if refused is None:
                hear(quorum, role, NodeId(request.replica_id), now)
                quorum.reply(received, chunk(quorum, snapshot, asked.position, request.max_bytes))
                return
        case _:
            refused = why_epoch_refused(quorum, asked.current_leader_epoch) or ErrorCode.NOT_LEADER_OR_FOLLOWER
    quorum.reply(received, messages.snapshot_response(refused, quorum.leading, snapshot=snapshot))


def chunk(quorum: QuorumState, snapshot: SnapshotId, position: int, size_max: int) -> Any:
    assert quorum.is_leader
    size = quorum.log.snapshot_size(snapshot)
    if size is None:
        return messages.snapshot_response(ErrorCode.SNAPSHOT_NOT_FOUND, quorum.leading, snapshot=snapshot)
    if not 0 <= position < size:
        return messages.snapshot_response(ErrorCode.POSITION_OUT_OF_RANGE, quorum.leading, snapshot=snapshot)
    want = max(0, min(size_max, quorum.config.snapshot_chunk_bytes_max))
    return messages.snapshot_response(
        ErrorCode.NONE,
        quorum.leading,
        snapshot=snapshot,
        size=size,
        position=position,
        content=quorum.log.read_snapshot_bytes(snapshot, position, want),
    )
