"""A follower's and an observer's work: fetch, truncate what diverges, append, and fall back on a snapshot.

Invariants:
  - one request is on its way at a time, and none while the log has unsynced bytes: a Fetch claims only what is durable;
  - only the answer to the latest request counts, and only in the role that sent it;
  - nothing below the high watermark is ever cut, nor what an earlier process knew to be committed, unless nobody here
    can apply it (`unfit`).
"""

from collections.abc import Callable
from typing import Any

from strandline.base.effects import Answered, Failed, Failure, Report, Sync
from strandline.base.errors import ErrorCode, error_of
from strandline.base.ids import NOBODY, OFFSET_MAX, NodeId
from strandline.base.time import NEVER, Instant, after
from strandline.quorum import messages
from strandline.quorum.damage import impaired, unfit
from strandline.quorum.ports import EpochEnd, SnapshotId
from strandline.quorum.roles import Download, Fetching, Follower, Observing, Seeking
from strandline.quorum.state import QuorumState
from strandline.quorum.tokens import FetchSent, PartSynced, SnapshotFetchSent

Following = Follower | Observing | Seeking
TakeResponse = Callable[[QuorumState, Following, NodeId, Any, Instant], None]


def drive(quorum: QuorumState, role: Following, now: Instant) -> None:
    """Ask for more as soon as it is allowed."""
    fetching = role.fetching
    if fetching.retry_at > now or not quorum.durability.is_complete:  # guard: follower-claims-unsynced-records
        return
    assert fetching.request == 0
    match role:
        case Seeking():
            voter = quorum.others[role.asked % len(quorum.others)]
            send_fetch(quorum, fetching, voter)
        case _ if fetching.download is not None:
            send_snapshot_fetch(quorum, fetching, fetching.download, role.leader)
        case _:
            send_fetch(quorum, fetching, role.leader)


def send_fetch(quorum: QuorumState, fetching: Fetching, peer: NodeId) -> None:
    assert quorum.durability.is_complete, "a Fetch claims only what is durable"
    assert fetching.request == 0, "one request at a time"
    fetching.request, fetching.retry_at = quorum.number(), NEVER
    config = quorum.config
    request = messages.fetch_request(
        cluster_id=quorum.cluster_id,
        me=quorum.me,
        directory_id=quorum.directory_id,
        epoch=quorum.epoch,
        last=quorum.log_end,
        log_start_offset=quorum.log.log_start_offset,
        high_watermark=quorum.high_watermark,
        wait_ms=config.fetch_wait_ms_max,
        size_max=config.fetch_bytes_max,
    )
    quorum.send(peer, request, messages.FETCH, FetchSent(peer, fetching.request))


def send_snapshot_fetch(quorum: QuorumState, fetching: Fetching, download: Download, peer: NodeId) -> None:
    assert fetching.request == 0, "one request at a time"
    assert not download.is_named
    fetching.request, fetching.retry_at = quorum.number(), NEVER
    request = messages.snapshot_request(
        cluster_id=quorum.cluster_id,
        me=quorum.me,
        directory_id=quorum.directory_id,
        epoch=quorum.epoch,
        snapshot=download.snapshot,
        position=download.position,
        size_max=quorum.config.snapshot_chunk_bytes_max,
    )
    quorum.send(peer, request, messages.FETCH_SNAPSHOT, SnapshotFetchSent(peer, fetching.request))


def asker(quorum: QuorumState, number: int) -> Following | None:
    """The role that waits for the answer to this request; None if nobody does any more."""
    match quorum.role:
        case (Follower() | Observing() | Seeking()) as role if role.fetching.request == number:
            return role
        case _:
            return None


def failed(quorum: QuorumState, role: Following, peer: NodeId, why: Failure, now: Instant) -> None:
    assert role is quorum.role
    fetching = role.fetching
    fetching.request = 0
    fetching.failures += 1
    match role:
        case Seeking():
            ask_next(quorum, role, quorum.retry_at(why, now))
        case Follower() if why is Failure.REFUSED:
            quorum.lose_leader(now)
        case Observing() if why is Failure.REFUSED:
            quorum.become_leaderless(now, now)
        case Follower() | Observing():
            # A closed connection is tried again at once: if the process is gone, that proves it.
            fetching.retry_at = now if fetching.failures == 1 else quorum.retry_at(why, now)


def ask_next(quorum: QuorumState, role: Seeking, at: Instant) -> None:
    assert quorum.others, "else nobody can be asked"
    role.asked = (role.asked + 1) % len(quorum.others)
    role.fetching.retry_at = at


def back_off(quorum: QuorumState, role: Following, now: Instant) -> None:
    """An answer of no use: ask again later; a seeker asks somebody else."""
    at = quorum.retry_at(Failure.MALFORMED, now)
    match role:
        case Seeking():
            ask_next(quorum, role, at)
        case Follower() | Observing():
            role.fetching.retry_at = at


def refused(quorum: QuorumState, role: Following, peer: NodeId, error: ErrorCode, leader: int, now: Instant) -> None:
    """The peer did not serve us, in our own epoch."""
    assert error is not ErrorCode.NONE
    match role:
        case Follower() if error is ErrorCode.NOT_LEADER_OR_FOLLOWER and leader == NOBODY:
            quorum.lose_leader(now)  # the leader says itself that it leads no more
        case Observing() if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            quorum.become_leaderless(now, now)
            back_off(quorum, role, now)
        case _:
            back_off(quorum, role, now)


# --- Fetch


def answered(quorum: QuorumState, event: Answered | Failed, take: TakeResponse, now: Instant) -> None:
    """The end of a Fetch or a FetchSnapshot; `take` is what its response means. One that is no longer awaited means
    nothing."""
    asked: FetchSent = event.token
    role = asker(quorum, asked.number)
    if role is None:
        return
    match event:
        case Failed():
            failed(quorum, role, asked.peer, event.why, now)
        case Answered():
            role.fetching.request = 0
            take(quorum, role, asked.peer, event.message, now)


def fetch_response(quorum: QuorumState, role: Following, peer: NodeId, response: Any, now: Instant) -> None:
    answer = messages.only_partition(response.responses)
    if response.error_code != ErrorCode.NONE or answer is None:
        error = error_of(response.error_code)
        quorum.out.append(Report("warning", f"node {peer} refused a Fetch of the metadata log: {error.name}"))
        back_off(quorum, role, now)
        return
    leader = answer.current_leader
    if quorum.heard_of(leader.leader_epoch, NodeId(leader.leader_id), now) and leader.leader_id != peer:
        return
    error = error_of(answer.error_code)
    if error is not ErrorCode.NONE:
        match quorum.role:
            case (Follower() | Observing() | Seeking()) as same if same is role:
                refused(quorum, same, peer, error, leader.leader_id, now)
            case _:
                pass
        return
    match quorum.role:
        case (Follower() | Observing()) as follower if follower.leader == peer and leader.leader_epoch == quorum.epoch:
            heard_from_leader(quorum, follower, now)
            follower.fetching.retry_at = now
            take(quorum, follower, answer, now)
        case (Follower() | Observing() | Seeking()) as other if other is role:
            back_off(quorum, other, now)
        case _:
            pass


def heard_from_leader(quorum: QuorumState, role: Follower | Observing, now: Instant) -> None:
    assert role is quorum.role
    role.fetching.failures = 0
    role.fetch_deadline = after(now, quorum.config.fetch_timeout_ms)
    quorum.hear_leader()
    match role:
        case Follower():
            role.has_fetched = True
        case Observing():
            pass


def take(quorum: QuorumState, role: Follower | Observing, answer: Any, now: Instant) -> None:
    """What a sound answer of the leader brings: a divergence, a snapshot's name, or records."""
    assert role is quorum.role
    if quorum.unfit is not None and not unfit.may_take(quorum, role, answer, now):
        return
    diverging, snapshot = answer.diverging_epoch, answer.snapshot_id
    if diverging.epoch >= 0:
        cut(quorum, role, EpochEnd(diverging.epoch, diverging.end_offset), now)
        return
    if snapshot.epoch >= 0:
        begin_download(quorum, role, SnapshotId(snapshot.end_offset, snapshot.epoch), now)
        return
    if answer.records is not None and len(answer.records):
        why = quorum.log.append_as_follower(answer.records, quorum.epoch)
        if why is not None:
            quorum.out.append(Report("error", f"node {role.leader} sent records that are refused: {why}"))
            back_off(quorum, role, now)
    # guard: follower-believes-any-high-watermark
    quorum.commit_to(max(quorum.high_watermark, min(answer.high_watermark, quorum.log.log_end_offset)))
    impaired.heard_high_watermark(quorum, answer.high_watermark)


def cut(quorum: QuorumState, role: Follower | Observing, diverging: EpochEnd, now: Instant) -> None:
    """Truncate to the last point at which our log may still agree with the leader's (KIP-595)."""
    mine = quorum.log.end_of_epoch(diverging.epoch)
    end = min(mine.end_offset, diverging.end_offset) if mine.epoch == diverging.epoch else mine.end_offset
    committed = quorum.committed_end
    if end < committed:
        why = f"it would cut committed metadata: {end} < {committed}"
        quorum.out.append(Report("error", f"node {role.leader} reports a divergence that is refused: {why}"))
        back_off(quorum, role, now)
        return
    if end < quorum.log.log_end_offset:  # guard: divergent-metadata-kept
        quorum.durability.truncate_to(end)


# --- FetchSnapshot


def begin_download(quorum: QuorumState, role: Follower | Observing, snapshot: SnapshotId, now: Instant) -> None:
    is_real = snapshot.end_offset <= OFFSET_MAX and snapshot.epoch <= quorum.epoch
    if snapshot.end_offset < quorum.committed_end or not is_real:
        what = "below the high watermark" if is_real else f"{snapshot}, which cannot exist"
        quorum.out.append(Report("error", f"node {role.leader} offers a snapshot {what}"))
        back_off(quorum, role, now)
        return
    quorum.log.begin_part(snapshot)
    role.fetching.download = Download(snapshot)


def snapshot_response(quorum: QuorumState, role: Following, peer: NodeId, response: Any, now: Instant) -> None:
    answer = messages.only_partition(response.topics)
    download = role.fetching.download
    if answer is None or download is None:
        role.fetching.download = None
        back_off(quorum, role, now)
        return
    leader = answer.current_leader
    if quorum.heard_of(leader.leader_epoch, NodeId(leader.leader_id), now):
        return
    match error_of(answer.error_code), quorum.role:
        case ErrorCode.NONE, (Follower() | Observing()) as same if same is role:
            heard_from_leader(quorum, same, now)
            take_chunk(quorum, same, download, answer, now)
        case error, (Follower() | Observing()) as same if same is role:
            same.fetching.download = None  # the snapshot may be gone; the next Fetch names a newer one
            refused(quorum, same, peer, error, leader.leader_id, now)
        case _:
            pass


def take_chunk(quorum: QuorumState, role: Follower | Observing, download: Download, answer: Any, now: Instant) -> None:
    assert role.fetching.download is download
    content = answer.unaligned_records or b""
    size = answer.size
    is_ours = answer.snapshot_id.end_offset == download.snapshot.end_offset and answer.position == download.position
    if not is_ours or not len(content) or not download.position + len(content) <= size:
        role.fetching.download = None
        back_off(quorum, role, now)
        return
    if size > quorum.config.snapshot_bytes_max:
        quorum.out.append(Report("error", f"the metadata snapshot of node {role.leader} has {size} bytes: too many"))
        role.fetching.download = None
        back_off(quorum, role, now)
        return
    quorum.log.append_part(download.snapshot, content)
    download.position += len(content)
    assert 0 < download.position <= size
    if download.position < size:
        role.fetching.retry_at = now
        return
    sync_part(quorum, role, quorum.log.part_path(download.snapshot))


def sync_part(quorum: QuorumState, role: Following, path: str) -> None:
    """Nothing is fetched until `path` is durable."""
    assert role.fetching.retry_at == NEVER, "nothing is asked for meanwhile"
    role.fetching.request = quorum.number()
    quorum.out.append(Sync((path,), PartSynced(role.fetching.request)))


def part_synced(quorum: QuorumState, token: PartSynced, now: Instant) -> None:
    """First the content of a download is made durable, then its name; only then the old log is thrown away."""
    role = asker(quorum, token.number)
    if role is None or role.fetching.download is None:
        return
    download, fetching = role.fetching.download, role.fetching
    if not download.is_named:
        why = quorum.log.name_part(download.snapshot)
        if why is None:
            download.is_named = True
            sync_part(quorum, role, quorum.log.directory)
            return
        quorum.out.append(Report("error", f"the downloaded metadata snapshot is refused: {why}"))
        fetching.request, fetching.download = 0, None
        back_off(quorum, role, now)
        return
    fetching.request, fetching.download, fetching.retry_at = 0, None, now
    quorum.durability.install_snapshot(download.snapshot)
    quorum.commit_to(max(quorum.high_watermark, download.snapshot.end_offset))
