"""Sequences of faults in which one guard alone holds. Plans that are written down name them, and some seeds draw some
of them.

Each takes a partition and the parts that its replicas play: `first` leads, `second` would lead next, `third` follows.
"""

from collections.abc import Callable, Sequence
from random import Random

from strandline.base.ids import OFFSETS_TOPIC, NodeId, TopicIdPartition
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.world.machine import Machine

CONTROLLER_PORT = 9093
PATIENCE = 4000  # looks, one each millisecond


def cast(injector: FaultInjector, rng: Random) -> tuple[TopicIdPartition, list[Machine]] | None:
    """A partition that is whole, and its replicas, the leader first."""
    image = injector.world.laws.metadata.image
    whole = [
        (TopicIdPartition(topic.topic_id, index), partition)
        for topic in image.topics.values()
        for index, partition in topic.partitions.items()
        if len(partition.isr) == len(partition.replicas) > 2 and partition.leader >= 0
    ]
    if not whole:
        return None
    at, partition = rng.choice(whole)
    nodes = [partition.leader, *[node for node in partition.replicas if node != partition.leader]]
    machines = [injector.world.machines[NodeId(node)] for node in nodes]
    return (at, machines) if all(machine.is_running and not machine.is_paused for machine in machines) else None


def cast_beside_controller(injector: FaultInjector, rng: Random) -> tuple[TopicIdPartition, list[Machine]] | None:
    """The same, where neither of the first two is the active controller: it stays while they fail."""
    found = cast(injector, rng)
    return None if found is None or injector.world.controller() in found[1][:2] else found


def hosted_on(machine: Machine, at: TopicIdPartition) -> Hosted | None:
    node = machine.node
    return None if node is None or node.broker is None else node.broker.replicas.host.partitions.find(at)


def leads(machine: Machine, at: TopicIdPartition) -> bool:
    hosted = hosted_on(machine, at)
    return hosted is not None and type(hosted.role) is Leader


def follows(machine: Machine, at: TopicIdPartition, leader: Machine) -> bool:
    hosted = hosted_on(machine, at)
    return hosted is not None and type(hosted.role) is Follower and hosted.role.leader == leader.node_id


def is_in_sync(injector: FaultInjector, at: TopicIdPartition, machine: Machine) -> bool:
    partition = injector.world.laws.metadata.image.partition(at)
    return partition is not None and machine.node_id in partition.isr


def are_in_sync(injector: FaultInjector, at: TopicIdPartition, machines: Sequence[Machine]) -> bool:
    return all(is_in_sync(injector, at, machine) for machine in machines)


def when(
    injector: FaultInjector, holds: Callable[[], bool], act: Callable[[], object], patience: int = PATIENCE
) -> None:
    """Look each millisecond; act once."""
    if holds():
        act()
    elif patience:
        injector.later(1, lambda: when(injector, holds, act, patience - 1))


def hold(source: Machine, target: Machine, span_ms: int, channel: str = "") -> None:
    """What `target` answers `source` on the connections that there are comes so much later."""
    for (_, name), connection in source.outbound.items():
        if connection.target is target and channel in ("", name):
            connection.down.lag_ms = span_ms


def ping_pong(injector: FaultInjector, rng: Random) -> None:
    """Leadership goes away and comes back, and a follower has not heard of any of it, or not of all."""
    found = cast(injector, rng)
    if found is None:
        return
    first, second, third = found[1][:3]
    controller = injector.world.controller()
    if controller is None or controller in (first, third):
        return
    injector.note(f"{third.name} hears late of metadata, and {first.name} loses its leadership")
    hold(third, controller, rng.choice((1500, 2500)))
    injector.later(20, first.kill)
    injector.later(60, first.start)
    injector.later(60 + rng.choice((400, 700)), second.kill)
    injector.later(1600, second.start)


def held_records(injector: FaultInjector, rng: Random) -> None:
    """Records that a leader sends reach a follower in its next term, when its log no longer has them."""
    found = cast(injector, rng)
    if found is None:
        return
    at, (first, second, third, *_) = found
    injector.note(f"what {first.name} answers its followers is held up, and {first.name} loses its leadership")
    hold(second, first, 3000, "fetch")
    hold(third, first, 3000, "fetch")
    hold(third, second, 5000, "fetch")
    injector.later(80, first.kill)
    injector.later(110, first.start)
    when(
        injector,
        lambda: is_in_sync(injector, at, first) and leads(second, at),
        lambda: injector.later(150, second.kill),
    )
    injector.later(3300, second.start)


def unproven_groups(injector: FaultInjector, rng: Random) -> None:
    """Coordinators change, and the new one has records of groups that it cannot know to be committed for a while: its
    only follower hears late from it."""
    topic = injector.world.laws.metadata.image.topic_named(OFFSETS_TOPIC)
    indexes = [] if topic is None else [n for n, one in topic.partitions.items() if len(one.isr) == 3]
    if topic is None or not indexes:
        return
    partition = topic.partitions[rng.choice(indexes)]
    nodes = [partition.leader, *[node for node in partition.replicas if node != partition.leader]]
    first, second, third = [injector.world.machines[NodeId(node)] for node in nodes]
    if not injector.may_be_killed(first):
        return
    injector.note(f"{third.name} hears late from {first.name} and {second.name}, and {first.name} falls")
    slow = injector.world.network.slow
    slow[first.name, third.name] = slow[second.name, third.name] = 900
    injector.later(rng.choice((200, 400)), first.kill)
    injector.later(1400, slow.clear)
    injector.later(1500, first.start)


def held_divergence(injector: FaultInjector, rng: Random) -> None:
    """A follower hears where its log diverged from a leader's in that leader's next term, long after it had repaired it
    with the help of another one."""
    found = cast_beside_controller(injector, rng)
    if found is None:
        return
    at, (first, second, third, *_) = found
    slow = injector.world.network.slow

    def all_in_sync() -> bool:
        return are_in_sync(injector, at, (first, second, third))

    def second_leads() -> None:
        first.start()
        when(injector, all_in_sync, lambda: injector.later(300, leave_a_tail))

    def leave_a_tail() -> None:
        slow[second.name, first.name] = slow[second.name, third.name] = 400
        injector.later(150, second.kill)
        when(injector, lambda: leads(first, at), come_back)

    def come_back() -> None:
        slow.clear()
        slow[first.name, second.name] = 3000
        second.start()
        when(injector, lambda: follows(second, at, first), lambda: injector.later(25, lose_again))

    def lose_again() -> None:
        first.kill()
        slow.clear()
        injector.later(30, first.start)
        when(injector, lambda: leads(third, at) and all_in_sync(), third.kill)

    first.kill()
    when(injector, lambda: leads(second, at), second_leads)
    injector.later(5500, third.start)


def held_proposal(injector: FaultInjector, rng: Random) -> None:
    """A follower is proposed for the ISR, and loses power before the controller hears of it."""
    found = cast(injector, rng)
    if found is None:
        return
    parts = found[1]
    first, third = parts[0], rng.choice(parts[1:])
    third.kill()

    def slow() -> None:
        injector.note(f"what {first.name} asks the controller comes late")
        for (endpoint, _), connection in first.outbound.items():
            if endpoint.port == CONTROLLER_PORT:
                connection.up.lag_ms = 1500
        injector.world.ambushes.setdefault("AlterPartitionRequest", []).append(strike)
        third.start()

    def strike(name: str) -> None:
        injector.later(rng.choice((0, 3, 20)), fall)

    def fall() -> None:
        if third.is_powered and injector.may_lose_data(third):
            third.power_cut()
            injector.later(10, third.start)

    injector.later(rng.choice((300, 1000)), slow)


def late_joiner(injector: FaultInjector, rng: Random) -> None:
    """A follower has caught up with what the next leader believes committed, and not with what is. Then the leader
    falls, and the rest of the ISR is silent."""
    found = cast_beside_controller(injector, rng)
    if found is None or len(found[1]) < 4:
        return
    at, parts = found
    first, second, joiner, *others = parts
    joiner.kill()
    injector.later(rng.choice((300, 1500)), joiner.start)

    def is_between() -> bool:
        one, two, last = (hosted_on(machine, at) for machine in (first, second, joiner))
        if one is None or two is None or last is None or is_in_sync(injector, at, joiner):
            return False
        return two.high_watermark <= last.log.log_end_offset < one.high_watermark

    def strike() -> None:
        first.kill()
        for machine in others:
            machine.pause()
            injector.later(900, machine.go_on)
        injector.later(1200, first.start)

    when(injector, is_between, strike)


def in_a_row(injector: FaultInjector, rng: Random) -> None:
    """Two leaders fall one after the other. The first has written in an epoch of which the second knows nothing, and
    the second in an epoch of which the third knows nothing, who leads then (KIP-279)."""
    found = cast_beside_controller(injector, rng)
    if found is None:
        return
    at, (first, second, third, *_) = found
    slow = injector.world.network.slow

    def all_in_sync() -> bool:
        return are_in_sync(injector, at, (first, second, third))

    def prepare() -> None:
        slow[first.name, second.name] = 800
        hold(third, second, 4000, "fetch")
        when(injector, only_third_has_news, fall)

    def fall() -> None:
        first.kill()
        slow.clear()
        injector.later(30, first.start)
        when(injector, has_written_alone, second.kill)
        when(injector, lambda: leads(third, at), second.start)

    def epoch_of(machine: Machine) -> int:
        hosted = hosted_on(machine, at)
        return -1 if hosted is None else hosted.log.latest_epoch

    def only_third_has_news() -> bool:
        return leads(first, at) and epoch_of(third) == epoch_of(first) > epoch_of(second)

    def has_written_alone() -> bool:
        hosted = hosted_on(second, at)
        role = None if hosted is None else hosted.role
        return type(role) is Leader and role.log.log_end_offset > role.epoch_start_offset

    def come_back() -> None:
        first.start()
        when(injector, all_in_sync, prepare)

    first.kill()
    when(injector, lambda: leads(second, at), come_back)


def lost_term(injector: FaultInjector, rng: Random) -> None:
    """A controller is cut off and goes on writing; the next one writes its first record and falls before anybody has
    it; then the first is elected again, and both logs hold what the other never had."""
    first = injector.world.controller()
    if first is None:
        return
    injector.note(f"{first.name}, the controller, is cut off, and the next one falls at once")
    others = [machine for machine in injector.world.machines.values() if machine is not first]
    for machine in others:
        injector.world.network.cut(first.name, machine.name)

    def elected() -> Machine | None:
        return next((one for one in others if one.node is not None and one.node.quorum.is_leader), None)

    def fall() -> None:
        machine = elected()
        injector.world.network.heal()
        if machine is None:
            return
        machine.kill()
        injector.later(1500, machine.start)

    span = rng.choice((0, 0, 60, 200))
    when(injector, lambda: elected() is not None, lambda: injector.later(span, fall))


def split_vote(injector: FaultInjector, rng: Random) -> None:
    """Two voters that do not hear each other ask the third for its vote, which falls whenever it has answered."""
    third = injector.world.controller()
    if third is None:
        return
    voters = [
        one for one in injector.world.machines.values() if one.node is not None and one.node.quorum.state.is_voter
    ]
    others = [machine for machine in voters if machine is not third]
    injector.note(f"{third.name} is to vote for one of {', '.join(machine.name for machine in others)}")
    for machine in others[1:]:
        injector.world.network.cut(others[0].name, machine.name)
    third.kill()
    injector.later(600, third.start)
    loses_power = rng.randrange(2) == 0

    def strike(name: str) -> None:
        if name == third.name and rng.randrange(2):
            injector.later(rng.choice((0, 1, 3)), fall)
        injector.world.ambushes.setdefault("VoteResponse", []).append(strike)

    def fall() -> None:
        if third.is_running:
            (third.power_cut if loses_power and injector.may_lose_data(third) else third.kill)()
            injector.later(3, third.start)

    injector.world.ambushes.setdefault("VoteResponse", []).append(strike)
    injector.later(3000, injector.world.network.heal)
