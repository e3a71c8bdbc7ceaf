"""One quorum machine on a stage: a script's commands are its events, and everything it does is shown."""

from random import Random
from typing import Any

from tests.unit.quorum.memory_log import MemoryLog

from strandline.base.effects import (
    Answered,
    Caller,
    Effect,
    Endpoint,
    Failed,
    Failure,
    Received,
    Reply,
    ReplyTo,
    Report,
    Save,
    Send,
    Sync,
    Synced,
    Token,
)
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId, Uuid
from strandline.base.time import Instant
from strandline.quorum import messages
from strandline.quorum.config import QuorumConfig
from strandline.quorum.elections.election_state import ElectionState, decode_quorum_state, encode_election
from strandline.quorum.messages import Leading, only_partition
from strandline.quorum.ports import EpochEnd
from strandline.quorum.quorum import Quorum
from strandline.wire.batch import build

CLUSTER = "a-cluster"
WHY = {"refused": Failure.REFUSED, "closed": Failure.CLOSED, "timed-out": Failure.TIMED_OUT}


def batch(base: int, epoch: int, values: tuple[bytes, ...] = (b"x",)) -> bytes:
    return build([(0, None, value, ()) for value in values], base_offset=base, leader_epoch=epoch)


def named(cluster: str) -> Any:
    return None if cluster == "none" else cluster


class Play:
    """Syncs and saves are answered by `synced`, one by one, or at once after `fast`."""

    def __init__(self) -> None:
        self.now = Instant(0)
        self.fast = True
        self.tokens: list[Token] = []
        self.sent: dict[int, Send] = {}  # the latest request to each peer
        self.requests = 0
        self.asked: dict[int, str] = {}
        self.quorum: Quorum

    def perform(self, verb: str, words: dict[str, str]) -> str:
        effects = getattr(self, verb)(**words)
        lines = self.show_all(effects)
        self.quorum.check()
        return "\n".join([*lines, self.state()])

    def show_all(self, effects: list[Effect]) -> list[str]:
        lines = []
        while effects:
            tokens: list[Token] = []
            for effect in effects:
                lines.append(self.show(effect))
                match effect:
                    case Save():
                        self.quorum.state.log.quorum_state = effect.content  # type: ignore[attr-defined]
                        tokens.append(effect.token)
                    case Sync():
                        tokens.append(effect.token)
                    case Send():
                        self.sent[effect.endpoint.port] = effect
                    case _:
                        pass
            self.tokens += tokens
            effects = []
            if self.fast:
                while self.tokens:
                    effects += self.quorum.step(Synced(self.tokens.pop(0)), self.now)
        return lines

    # --- commands

    def new(
        self,
        me: str,
        voters: str,
        epoch: str = "0",
        leader: str = "-1",
        voted: str = "-1",
        log: str = "",
        applied: str = "0",
    ) -> Any:
        """`log`: epochs of records, one each."""
        endpoints = {NodeId(int(n)): Endpoint("host", int(n)) for n in voters.split(",")}
        stored = MemoryLog()
        for offset, record_epoch in enumerate(log.split(",") if log else []):
            stored.append_as_leader(batch(offset, int(record_epoch)))
        stored.take_unsynced()
        election = ElectionState(int(epoch), NodeId(int(leader)), NodeId(int(voted)))
        stored.quorum_state = encode_election(election, CLUSTER, endpoints, int(applied))
        directory = Uuid(bytes(15) + b"\x01")
        self.quorum = Quorum(
            NodeId(int(me)), directory, CLUSTER, endpoints, stored, QuorumConfig(), Random(1), self.now
        )
        return self.quorum.start(self.now)

    def slow(self) -> list[Effect]:
        self.fast = False
        return []

    def synced(self) -> list[Effect]:
        return self.quorum.step(Synced(self.tokens.pop(0)), self.now)

    def wait(self, ms: str = "") -> list[Effect]:
        """To the deadline, or for `ms`."""
        self.now = Instant(self.now + int(ms)) if ms else self.quorum.deadline()
        return self.quorum.expire(self.now) if self.quorum.deadline() <= self.now else []

    def receive(self, message: Any, version: int) -> list[Effect]:
        self.requests += 1
        to = ReplyTo(1, self.requests, self.requests, type(message).key, version)
        return self.quorum.step(Received(to, Caller("peer", "host", "CONTROLLER"), message), self.now)

    def vote(
        self, by: str, epoch: str, last: str = "0@0", pre: str = "no", to: str = "1", cluster: str = CLUSTER
    ) -> Any:
        """`last`: log end @ epoch of the last record."""
        end, last_epoch = last.split("@")
        request = messages.vote_request(
            cluster_id=named(cluster),
            voter=NodeId(int(to)),
            me=NodeId(int(by)),
            directory_id=Uuid(bytes(16)),
            epoch=int(epoch),
            last=EpochEnd(int(last_epoch), int(end)),
            pre_vote=pre == "yes",
        )
        return self.receive(request, 2)

    def begin(self, by: str, epoch: str, cluster: str = CLUSTER) -> list[Effect]:
        endpoint = Endpoint("host", int(by))
        request = messages.begin_request(
            cluster_id=named(cluster), voter=NodeId(1), me=NodeId(int(by)), epoch=int(epoch), endpoint=endpoint
        )
        return self.receive(request, 1)

    def end(self, by: str, epoch: str, order: str = "", cluster: str = CLUSTER) -> list[Effect]:
        successors = [NodeId(int(n)) for n in order.split(",") if n]
        endpoint = Endpoint("host", int(by))
        request = messages.end_request(
            cluster_id=named(cluster), me=NodeId(int(by)), epoch=int(epoch), successors=successors, endpoint=endpoint
        )
        return self.receive(request, 1)

    def fetch(self, by: str, epoch: str, offset: str, last: str = "0", hw: str = "-1", cluster: str = CLUSTER) -> Any:
        request = messages.fetch_request(
            cluster_id=named(cluster),
            me=NodeId(int(by)),
            directory_id=Uuid(bytes(16)),
            epoch=int(epoch),
            last=EpochEnd(int(last), int(offset)),
            log_start_offset=0,
            high_watermark=int(hw),
            wait_ms=500,
            size_max=1 << 20,
        )
        return self.receive(request, 18)

    def append(self, value: str = "x") -> list[Effect]:
        _, effects = self.quorum.append([value.encode()], self.now)
        return effects

    def resign(self) -> list[Effect]:
        return self.quorum.resign(self.now)

    def answer(self, peer: str, message: Any) -> list[Effect]:
        return self.quorum.step(Answered(self.sent[int(peer)].token, message), self.now)

    def voted(self, by: str, granted: str, epoch: str, leader: str = "-1") -> list[Effect]:
        who = Leading(NodeId(int(leader)), int(epoch), None)
        return self.answer(by, messages.vote_response(ErrorCode.NONE, who, granted == "yes"))

    def begun(self, by: str, epoch: str) -> list[Effect]:
        return self.answer(by, messages.begin_response(ErrorCode.NONE, Leading(NodeId(1), int(epoch), None)))

    def fetched(
        self,
        by: str,
        epoch: str,
        leader: str = "",
        records: str = "",
        hw: str = "0",
        diverging: str = "",
        error: str = "NONE",
    ) -> Any:
        """`records`: base@epoch; `diverging`: end@epoch."""
        who = Leading(NodeId(int(leader or by)), int(epoch), None)
        base, _, record_epoch = records.partition("@")
        end, _, end_epoch = diverging.partition("@")
        message = messages.fetch_response(
            ErrorCode[error],
            who,
            high_watermark=int(hw),
            records=batch(int(base), int(record_epoch)) if records else b"",
            diverging=EpochEnd(int(end_epoch), int(end)) if diverging else None,
        )
        return self.answer(by, message)

    def failed(self, peer: str, why: str) -> list[Effect]:
        return self.quorum.step(Failed(self.sent[int(peer)].token, WHY[why]), self.now)

    # --- what is shown

    def state(self) -> str:
        quorum = self.quorum
        role = type(quorum.state.role).__name__
        leader = "" if quorum.leader_id == NOBODY else f" leader={quorum.leader_id}"
        end = quorum.state.log.log_end_offset
        return f"= {role} epoch={quorum.leader_epoch}{leader} hw={quorum.high_watermark} end={end} at {self.now} ms"

    def show(self, effect: Effect) -> str:
        match effect:
            case Save():
                saved, _ = decode_quorum_state(effect.content, effect.path)
                return f"save epoch={saved.epoch} leader={saved.leader} voted={saved.voted}"
            case Sync():
                return "sync " + " ".join(effect.paths)
            case Send():
                return f"-> {effect.endpoint.port}: {self.show_request(effect.message)}"
            case Reply():
                return f"<- {self.show_response(effect.message)}"
            case Report():
                return f"{effect.level}: {effect.text}"
            case _:
                return repr(effect)

    def show_request(self, message: Any) -> str:
        asked: Any = only_partition(message.topics)
        match type(message).__name__:
            case "VoteRequest":
                kind = "pre-vote" if asked.pre_vote else "vote"
                return f"{kind} epoch={asked.replica_epoch} last={asked.last_offset}@{asked.last_offset_epoch}"
            case "BeginQuorumEpochRequest":
                return f"begin epoch={asked.leader_epoch}"
            case "EndQuorumEpochRequest":
                order = ",".join(str(info.candidate_id) for info in asked.preferred_candidates)
                return f"end epoch={asked.leader_epoch} order={order}"
            case "FetchRequest":
                last = f"{asked.fetch_offset}@{asked.last_fetched_epoch}"
                return f"fetch epoch={asked.current_leader_epoch} from={last} hw={asked.high_watermark}"
            case name:
                return name

    def show_response(self, message: Any) -> str:
        if message.error_code:
            return ErrorCode(message.error_code).name
        topics = getattr(message, "topics", None) or message.responses
        reported: Any = only_partition(topics)
        error = "" if not reported.error_code else ErrorCode(reported.error_code).name + " "
        leader = getattr(reported, "current_leader", reported)
        who = f"leader={leader.leader_id} epoch={leader.leader_epoch}"
        match type(message).__name__:
            case "VoteResponse":
                return f"{error}{'granted' if reported.vote_granted else 'not granted'} {who}"
            case "FetchResponse":
                found = f" diverging={reported.diverging_epoch.end_offset}@{reported.diverging_epoch.epoch}"
                diverging = found if reported.diverging_epoch.epoch >= 0 else ""
                size = f" records={'yes' if reported.records else 'no'}"
                return f"{error}{who} hw={reported.high_watermark}{diverging}{size}"
            case _:
                return f"{error}{who}"
