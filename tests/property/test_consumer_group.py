"""Consumers that join, report, revoke, leave, vanish and return in any order, on a coordinator that fails over and
whose log refuses, loses sight of and commits what it writes.

Laws:
  - no partition is owned by two members: not in the coordinator's memory (`check`), and not among the consumers, each
    of which consumes what the last answer gave it until it gives it up or is told that it is fenced
  - what the log says is what the memory says
  - at the end, when everything works again, the group reaches its target: each partition has one owner
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.group.consuming import REBALANCE_MS, SESSION_MS, Consumer, Consumers, replica, state

from strandline.base.errors import ErrorCode as E
from strandline.group.consumer.group import ConsumerGroupState
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

NAMES = ("a", "b", "c", "i1", "i2")  # the last two are static
ASKS = ("join", "beat", "lazy", "leave", "away", "subscribe", "regex", "assignor")
TOPICS = (("t",), ("t", "u"), ("u",), ())
STEP = st.tuples(
    st.sampled_from(
        (
            *("join",) * 4,
            *("beat",) * 8,
            *("commit",) * 8,
            *("lazy", "leave", "away", "subscribe", "regex", "assignor", "grow", "forget", "wait"),
            *("fail", "refuse", "move", "lost"),
        )
    ),
    st.integers(0, 9),
)


class World(Consumers):
    """Answers arrive when they are committed, and each consumer has at most one request under way."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: dict[str, Consumer] = {}
        self.under_way: dict[str, int] = {}
        self.sent_at: dict[str, int] = {}
        self.silent_since: dict[str, int] = {}  # by member id
        self.epoch = 0

    def client(self, choice: int) -> tuple[str, Consumer]:
        name = NAMES[choice % len(NAMES)]
        if name not in self.clients:
            instance = name if name.startswith("i") else None
            self.clients[name] = Consumer(self, f"{name}-{self.made_ids()}", instance=instance)
        return name, self.clients[name]

    def made_ids(self) -> int:
        return len(self.asked)

    def post(self, name: str, request: Any) -> None:
        assert name not in self.under_way
        self.sent_at[name] = self.now
        self.under_way[name] = self.send(request)
        self.hear()

    def hear(self) -> None:
        for name, number in list(self.under_way.items()):
            if number in self.answers:
                del self.under_way[name]
                self.heard(self.clients[name], self.sent_at[name], self.answers[number])
        self.law()

    def heard(self, client: Consumer, sent_at: int, answer: ConsumerGroupHeartbeatResponse) -> None:
        match E(answer.error_code):
            case E.NONE if answer.member_epoch >= 0:
                client.took(answer)
                self.silent_since[client.member_id] = sent_at
            case E.NONE | E.UNKNOWN_MEMBER_ID | E.FENCED_MEMBER_EPOCH | E.FENCED_INSTANCE_ID | E.GROUP_ID_NOT_FOUND:
                client.has, client.epoch = set(), 0  # it abandons everything
            case error:
                assert error in (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.UNRELEASED_INSTANCE_ID), error

    def law(self) -> None:
        """A client whose session is over does not consume: it knows that itself, by when it sent the last request that
        was answered."""
        owners: dict[tuple[str, int], str] = {}
        for name, client in self.clients.items():
            if client.epoch and self.now - self.silent_since.get(client.member_id, self.now) < SESSION_MS:
                for at in client.has:
                    assert at not in owners, f"{at} is consumed by {owners[at]} and by {name}"
                    owners[at] = name

    def play(self, step: str, choice: int) -> None:
        name, client = self.client(choice)
        self.hear()
        if name in self.under_way and step in ASKS:
            return  # it waits for an answer
        match step:
            case "join":
                client.epoch, client.has = 0, set()
                self.post(name, client.first())
            case "beat" | "lazy" | "subscribe" | "regex" | "assignor" if client.epoch:
                says: dict[str, dict[str, Any]] = {
                    "beat": {"topic_partitions": client.owned()},
                    "subscribe": {"subscribed_topic_names": TOPICS[choice % 4], "topic_partitions": client.owned()},
                    "regex": {"subscribed_topic_regex": ("", "t", "u", "[tu]")[choice % 4]},
                    "assignor": {"server_assignor": ("uniform", "range")[choice % 2]},
                }
                self.post(name, client.request(**says.get(step, {})))
            case "leave" if client.epoch:
                client.has = set()
                self.post(name, client.request(member_epoch=-1))
            case "away" if client.epoch and client.instance:
                client.has = set()
                self.post(name, client.request(member_epoch=-2))
            case "forget":  # the process dies, and another one comes
                self.clients.pop(name)
                self.under_way.pop(name, None)
            case "wait":
                self.wait(5_000 * choice + 1)
            case "grow":
                self.grow("t", 2 + choice % 4)
            case "commit":
                self.commit()
            case "fail" if self.log.under_way:
                self.fail(E.REQUEST_TIMED_OUT, is_written=True)
            case "refuse":
                self.log.refuses = E.NOT_ENOUGH_REPLICAS if choice % 2 else None
            case "move" | "lost":
                self.fail_over(loses=step == "lost")
        self.hear()

    def fail_over(self, *, loses: bool) -> None:
        """`loses`: another replica leads, which does not have what was not committed."""
        self.log.epoch = None
        while self.log.under_way:
            self.fail(E.NOT_LEADER_OR_FOLLOWER, is_written=not loses)
        self.move_away()
        self.hear()
        self.epoch += 1
        self.take_over(self.epoch)


def settle(world: World) -> None:
    """Whoever is not there any more is forgotten, and the others report. As clients do after an error, they say all."""
    world.log.refuses = None
    for _ in range(2):
        world.commit()
        world.hear()
    survivors = [client for client in world.clients.values() if client.epoch]
    for _ in range(8):
        world.wait(SESSION_MS // 4)
        for client in survivors:
            if client.epoch == 0:
                client.join()
            elif E(client.beat(rebalance_timeout_ms=REBALANCE_MS, **client.fields).error_code) is not E.NONE:
                client.epoch, client.has = 0, set()
    for _ in range(6):
        for client in survivors:
            client.beat()


@settings(max_examples=100, deadline=None)
@given(st.lists(STEP, min_size=25, max_size=80))
def test_no_partition_has_two_owners_and_the_log_says_what_the_memory_says(steps: list[tuple[str, int]]) -> None:
    world = World()
    for step, choice in steps:
        world.play(step, choice)
        if not world.log.under_way:
            assert replica(world.reload()) == state(world)
    settle(world)
    group = world.shard.consumer("g")
    if group is None or not group.members:
        return
    assert group.state is ConsumerGroupState.STABLE
    names = set().union(*(group.topics_of(member) for member in group.members.values()))
    wanted = {(name, p) for name in names for p in world.image.topics[world.image.topic_ids[name]].partitions}
    has = [at for member in group.members.values() for at in world.held(member.assigned)]
    assert sorted(has) == sorted(wanted), "each partition of a subscribed topic has one owner"
    consumed = [at for client in world.clients.values() if client.epoch for at in client.has]
    assert sorted(consumed) == sorted(wanted), "and that one knows it"
