"""The history of an application's clients, judged by `strandline.history` as the simulator's histories are.

history = strandline.watch(producer, consumer)
producer, consumer = history.clients
…
history.check()
"""

from collections.abc import Callable, Iterable
from typing import Any

from strandline.base.value import Value
from strandline.client.admin.partitions import PartitionState
from strandline.client.config import ClientConfig
from strandline.history.anomaly import Anomaly
from strandline.history.judge import Judgement, judge, report
from strandline.history.operation import Key, Kind, Operation, Outcome
from strandline.history.policy import Facts
from strandline.testing.answers.captured import Request
from strandline.testing.watching.final import FINAL, read_all
from strandline.testing.watching.recording import Recording, Traits
from strandline.testing.watching.wire_traits import traits_of
from strandline.testing.watching.wrapping import wrapped

LOST = ("lost-write", "unseen", "poll-skip", "int-poll-skip")
DUPLICATED = ("duplicate",)
UNCOMMITTED = ("G1a", "G1b", "precommitted-read")  # everything else is about order


class HistoryIsWrong(AssertionError):
    """Records were lost, duplicated, reordered or read uncommitted; or the history proves nothing."""


class Verdict(Value, frozen=True):
    judgement: Judgement
    acknowledged: int  # records
    read: int  # records that the watched consumers got

    def of(self, names: Iterable[str]) -> tuple[Anomaly, ...]:
        return tuple(anomaly for anomaly in self.judgement.violations if anomaly.name in names)

    @property
    def lost(self) -> tuple[Anomaly, ...]:
        """Acknowledged records that are not in the log, and records that a consumer passed over."""
        return self.of(LOST)

    @property
    def duplicated(self) -> tuple[Anomaly, ...]:
        return self.of(DUPLICATED)

    @property
    def uncommitted(self) -> tuple[Anomaly, ...]:
        """Records that were read although their transaction was aborted, or their producer was refused."""
        return self.of(UNCOMMITTED)

    @property
    def reordered(self) -> tuple[Anomaly, ...]:
        others = (*LOST, *DUPLICATED, *UNCOMMITTED)
        return tuple(anomaly for anomaly in self.judgement.violations if anomaly.name not in others)

    @property
    def tolerated(self) -> tuple[tuple[Anomaly, str], ...]:
        """What was found, and is allowed for clients that are configured like these; with the reason."""
        return self.judgement.tolerated

    def __str__(self) -> str:
        groups = {
            "lost": self.lost,
            "duplicated": self.duplicated,
            "reordered": self.reordered,
            "read uncommitted": self.uncommitted,
        }
        head = f"{self.acknowledged} records were acknowledged, {self.read} were read"
        found = [f"{len(group)} {what}" for what, group in groups.items() if group]
        excused = [f"tolerated: {n} {name}: {why}" for (name, why), n in self.judgement.excused().items()]
        lines = [f"{head}: {', '.join(found) or 'nothing is wrong'}", *excused]
        return "\n".join([*lines, *(report(group) for group in groups.values() if group)])


class WatchedHistory:
    """`clients`: the watched ones, which the application is to use from now on, in the order in which they came."""

    def __init__(
        self,
        clients: Iterable[Any],
        config: Callable[[], ClientConfig],
        states: Callable[[list[str]], Iterable[PartitionState]],
        requests: Callable[[], Iterable[Request]],
        *,
        acks: int | None = None,
        idempotent: bool | None = None,
        read_committed: bool | None = None,
    ) -> None:
        """What is None is taken from the clients' requests."""
        self.recording = Recording()
        self.clients: tuple[Any, ...] = ()
        self.config = config
        self.states = states
        self.requests = requests
        self.meant = {"acks": acks, "is_idempotent": idempotent, "is_read_committed": read_committed}
        self.add(*clients)

    def add(self, *clients: Any) -> tuple[Any, ...]:
        """Watch further clients, such as that of a process that starts again; the watched ones."""
        names = [f"client {len(self.clients) + number}" for number in range(1, len(clients) + 1)]
        new = tuple(wrapped(client, self.recording, name) for client, name in zip(clients, names, strict=True))
        self.clients += new
        return new

    def operations(self) -> list[Operation]:
        """What was recorded until now."""
        return self.recording.operations({state.at.topic: state.topic_id for state in self.known()}, self.traits())

    def known(self) -> list[PartitionState]:
        return list(self.states(self.recording.topics()))

    def traits(self) -> dict[str, Traits]:
        recording = self.recording
        everybody = {FINAL: None} | dict.fromkeys(client.process for client in self.clients)
        found = traits_of(recording.processes, everybody, self.requests())
        meant = {name: value for name, value in self.meant.items() if value is not None}
        return {
            process: Traits(**({name: getattr(one, name) for name in Traits.__struct_fields__} | meant))
            if process != FINAL
            else Traits()
            for process, one in found.items()
        }

    def judge(self) -> Verdict:
        """Read everything that is in the logs, and judge. Producers should be flushed before: a record without an
        answer may be there or not."""
        states = self.known()
        places = [(state.at.topic, state.at.partition) for state in states]
        starts = read_all(self.config(), places, self.recording) if places else {}
        keys = {state.at: Key(state.at.topic, state.topic_id, state.at.partition) for state in states}
        operations = self.operations()
        judgement = judge(
            operations,
            Facts(),
            {key: starts[place] for place, key in keys.items()},
            dict.fromkeys(keys.values(), FINAL),
        )
        sent = [op for op in operations if op.kind is Kind.SEND and op.outcome is Outcome.OK and op.acks]
        read = [op for op in operations if op.process != FINAL]
        return Verdict(judgement, sum(len(op.writes) for op in sent), sum(len(op.reads) for op in read))

    def check(self) -> Verdict:
        """As `judge`; raises HistoryIsWrong if anything is wrong, or if no record was acknowledged."""
        verdict = self.judge()
        if verdict.judgement.violations:
            raise HistoryIsWrong(str(verdict))
        if not verdict.acknowledged:
            raise HistoryIsWrong("no record was acknowledged, so nothing is proved")
        return verdict
