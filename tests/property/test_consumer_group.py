"""Consumers of both protocols that join, report, revoke, leave, vanish and return in any order, on a coordinator that
fails over and whose log refuses, loses sight of and commits what it writes. The group's protocol follows its members'.

Laws:
  - no partition is owned by two members: not in the coordinator's memory (`check`), and not among the consumers, each
    of which consumes what the last answer gave it until it gives it up or is told that it is fenced
  - what the log says is what the memory says
  - at the end, when everything works again, the group reaches its target: each partition has one owner
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.group.classic_clients import COOPERATIVE, EAGER, Classic
from tests.unit.group.consuming import SESSION_MS, Consumer, Consumers, replica, state

from strandline.base.errors import ErrorCode as E
from strandline.group.classic.group import State
from strandline.group.consumer.group import ConsumerGroup, ConsumerGroupState
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

NAMES = ("a", "b", "c", "i1", "i2")  # the last two are static
CLASSIC = ("k", "l", "m")  # they speak the classic protocol; the static ones change theirs
FAILED = (E.NONE, E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.FENCED_INSTANCE_ID, E.GROUP_ID_NOT_FOUND)
TOPICS = (("t",), ("t", "u"), ("u",), ())
STEP = st.tuples(
    st.sampled_from(
        (
            *("join", "beat", "beat", "beat", "beat", "lazy", "leave", "away", "subscribe", "regex", "assignor"),
            *("classic", "classic", "beat", "beat", "switch"),
            *("wait", "grow", "forget", "commit", "commit", "fail", "refuse", "move", "lost"),
        )
    ),
    st.integers(0, 9),
)


class World(Consumers):
    """Answers arrive when they are committed, and each consumer has at most one request under way."""

    def __init__(self, protocol: str) -> None:
        super().__init__()
        self.protocol = protocol  # of the classic members
        self.clients: dict[str, Consumer | Classic] = {}
        self.under_way: dict[str, int] = {}
        self.sent_at: dict[str, int] = {}
        self.silent_since: dict[str, int] = {}
        self.epoch = 0

    def client(self, choice: int) -> tuple[str, Consumer | Classic]:
        name = NAMES[choice % len(NAMES)]
        if name not in self.clients:
            instance = name if name.startswith("i") else None
            self.clients[name] = Consumer(self, f"{name}-{self.made_ids()}", instance=instance)
        return name, self.clients[name]

    def made_ids(self) -> int:
        return len(self.asked)

    def post(self, name: str, request: Any) -> None:
        assert name not in self.under_way
        self.ask_later(name, request)
        self.hear()

    def ask_later(self, name: str, request: Any) -> None:
        self.sent_at[name] = self.now
        self.under_way[name] = self.send(request)

    def hear(self) -> None:
        for _ in range(100):
            heard = [name for name, number in self.under_way.items() if number in self.answers]
            for name in heard:
                client, answer = self.clients[name], self.answers[self.under_way.pop(name)]
                if isinstance(client, Consumer):
                    self.heard(name, client, answer)
                    continue
                goes_on = client.heard(answer)
                if E(answer.error_code) in (E.NONE, E.REBALANCE_IN_PROGRESS):
                    self.silent_since[name] = self.sent_at[name]
                if goes_on:
                    self.ask_later(name, client.request())
                elif E(answer.error_code) is E.FENCED_INSTANCE_ID:
                    del self.clients[name]
            self.law()
            if not heard:
                return
        raise AssertionError("they ask without end")

    def heard(self, name: str, client: Consumer, answer: ConsumerGroupHeartbeatResponse) -> None:
        match E(answer.error_code):
            case E.NONE if answer.member_epoch >= 0:
                client.took(answer)
                self.silent_since[name] = self.sent_at[name]
            case error if error in FAILED:
                client.has, client.epoch = set(), 0  # it abandons everything
            case error:
                assert error in (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.UNRELEASED_INSTANCE_ID), error

    def law(self) -> None:
        """A client whose session is over does not consume: it knows that itself, by when it sent the last request that
        was answered."""
        owners: dict[tuple[str, int], str] = {}
        for name, client in self.clients.items():
            if client.epoch and self.now - self.silent_since.get(name, self.now) < SESSION_MS:
                for at in client.has:
                    assert at not in owners, f"{at} is consumed by {owners[at]} and by {name}"
                    owners[at] = name

    def play(self, step: str, choice: int) -> None:
        match step:
            case "classic" | "switch":
                self.begin_classic(CLASSIC[choice % 3] if step == "classic" else NAMES[3 + choice % 2])
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
            case _ if choice > 5 and self.clients:
                self.play_one(step, list(self.clients)[choice % len(self.clients)], choice)
            case _:
                self.play_one(step, self.client(choice)[0], choice)
        self.hear()

    def begin_classic(self, name: str) -> None:
        """A process that speaks the classic protocol. Another of that name is dead."""
        if name in CLASSIC and name in self.clients:
            return
        self.end(name)
        instance = name if name in NAMES else None
        client = Classic(self, self.protocol, instance=instance, topics=TOPICS[len(self.asked) % 3])
        self.clients[name] = client
        self.post(name, client.begin())

    def end(self, name: str) -> None:
        self.clients.pop(name, None)
        self.under_way.pop(name, None)
        self.silent_since.pop(name, None)

    def play_one(self, step: str, name: str, choice: int) -> None:
        client = self.clients[name]
        if step == "forget":  # the process dies, and another one comes
            self.end(name)
        elif name in self.under_way:
            return  # it waits for an answer
        elif isinstance(client, Consumer):
            self.play_consumer(step, name, client, choice)
        elif client.next:
            match step:
                case "beat" | "lazy" | "join" | "subscribe" if client.next:
                    if step == "subscribe":
                        client.topics, client.next = TOPICS[choice % 3], "join"
                    self.post(name, client.request())
                case "leave" if client.member_id:
                    self.post(name, client.leave_request())
                    self.clients.pop(name)
                    self.under_way.pop(name, None)

    def play_consumer(self, step: str, name: str, client: Consumer, choice: int) -> None:
        match step:
            case "join":
                client.epoch, client.has = 0, set()
                self.post(name, client.first())
            case "beat" | "lazy" | "subscribe" | "regex" | "assignor" if client.epoch:
                if step == "subscribe":
                    client.fields["subscribed_topic_names"] = TOPICS[choice % 4]
                elif step == "regex":
                    client.fields["subscribed_topic_regex"] = ("", "t", "u", "[tu]")[choice % 4]
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

    def fail_over(self, *, loses: bool) -> None:
        """`loses`: another replica leads, which does not have what was not committed."""
        self.log.epoch = None
        while self.log.under_way:
            self.fail(E.NOT_LEADER_OR_FOLLOWER, is_written=not loses)
        self.move_away()
        self.hear()
        self.epoch += 1
        self.take_over(self.epoch)


def await_stable(world: World) -> list[Consumer | Classic]:
    """Whoever is not there any more is forgotten, and the others report."""
    world.log.refuses = None
    for _ in range(2):
        world.commit()
        world.hear()
    survivors = {n: c for n, c in world.clients.items() if (c.epoch if isinstance(c, Consumer) else c.next)}
    world.clients = dict(survivors)
    for at, span in enumerate([SESSION_MS // 4] * 24 + [100] * 8):
        world.wait(span)
        for name, client in survivors.items():
            report(world, name, client, says_all=at == 0)
        world.commit()
        world.hear()
    return list(survivors.values())


def report(world: World, name: str, client: Consumer | Classic, *, says_all: bool) -> None:
    """`says_all`: as clients do after an error."""
    if isinstance(client, Classic):
        if client.next and name not in world.under_way:
            world.post(name, client.request())
        for _ in range(4):
            world.commit()
            world.hear()
    elif client.epoch == 0:
        client.join()
    elif (
        E(client.beat(**({"rebalance_timeout_ms": 60_000, **client.fields} if says_all else {})).error_code)
        is not E.NONE
    ):
        client.epoch, client.has = 0, set()


@settings(max_examples=200, deadline=None)
@given(st.sampled_from((EAGER, COOPERATIVE)), st.lists(STEP, max_size=60))
def test_no_partition_has_two_owners_and_the_log_says_what_the_memory_says(
    protocol: str, steps: list[tuple[str, int]]
) -> None:
    world = World(protocol)
    for step, choice in steps:
        world.play(step, choice)
        if not world.log.under_way:
            assert replica(world.reload()) == state(world)
    clients = await_stable(world)
    group = world.shard.groups.get("g")
    if group is None or not group.members:
        assert not any(client.has for client in clients)
        return
    if isinstance(group, ConsumerGroup):
        assert group.state is ConsumerGroupState.STABLE
        names = set().union(*(group.topics_of(member) for member in group.members.values()))
        has = [at for member in group.members.values() for at in world.held(member.assigned)]
    else:
        assert group.state is State.STABLE
        names = {topic for client in clients if isinstance(client, Classic) and client.next for topic in client.topics}
        has = [at for client in clients for at in client.has]
    assert isinstance(group, ConsumerGroup) == any(isinstance(c, Consumer) and c.epoch for c in clients)
    wanted = {(name, p) for name in names for p in world.image.topics[world.image.topic_ids[name]].partitions}
    assert sorted(has) == sorted(wanted), "each partition of a subscribed topic has one owner"
    consumed = [at for client in world.clients.values() if client.epoch for at in client.has]
    assert sorted(consumed) == sorted(wanted), "and that one knows it"
