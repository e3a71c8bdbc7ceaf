"""A state of the model: what is in the metadata about one partition and its brokers, but for the epochs.

Epochs grow for ever, so a state has none; every image that is built from one has the same, and each transition is
checked to make them grow. Brokers are numbered from 1.

A state stands for all that differ from it only in the brokers' names (`renaming`):
  - the first replica is always broker 1, the second broker 2, and so on, and brokers without a replica follow, ordered
    by their status. Nothing in the controller compares names, so this loses nothing;
  - with symmetry, replicas in like states are interchangeable too, whatever their places. That is exact for a model in
    which replicas may be put in any order at any time, and events are tried with every replica in the first place.

Where brokers have log directories, each has two, and a replica's place says what the metadata's directory of it is
worth: HERE (one that the broker has), AWAY (one that it has not, or no longer), UNREPORTED (not yet). Which of two
directories a replica lies in makes no difference, so one that has moved is HERE as before.

Besides the metadata a state has three ghosts, of which the controller knows nothing. Two are about the time since the
ISR was last large enough:
  - `lossy`: how many members of ISR and ELR have lost their tails since (lossy shutdowns, unregistrations, replicas
    that began anew in another directory), or UNDECIDED: since then min ISR has changed, or an election was unclean;
  - `remembers`: no reassignment since has taken away a replica of the last known ELR;
  - `known_min`: the lowest effective min ISR that the leader may believe in when its next proposal is answered. The
    answer does not come through the metadata log, and may overtake it; but a proposal of this partition epoch knows
    whatever the log says before the record that began the epoch, unless that was an answer, too.
"""

from collections.abc import Iterable
from typing import NamedTuple

from strandline.base.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicIdPartition, Uuid
from strandline.base.time import Instant
from strandline.controller.configs import MIN_ISR_KEY
from strandline.metadata.features import ELR_FEATURE, METADATA_LEVEL, METADATA_VERSION
from strandline.metadata.image import (
    RECOVERED,
    TOPIC_RESOURCE,
    UNASSIGNED_DIRECTORY,
    Broker,
    Image,
    Partition,
    Topic,
    directory_of,
)
from strandline.metadata.strategy import STRATEGY_KEY
from strandline.sim.model.setup import STRATEGIES, Setup

Ids = tuple[int, ...]

GONE, FENCED, ACTIVE, LEAVING, STOPPED = range(5)
STATUS = ("unregistered", "fenced", "active", "shutting down", "shut down")

HERE, AWAY, UNREPORTED = range(3)
UNDECIDED = -1
NO_ONE = -1  # NOBODY

TOPIC = "t"
TOPIC_ID = Uuid(b"model.topic.id..")
AT = TopicIdPartition(TOPIC_ID, 0)
RESOURCE = (TOPIC_RESOURCE, TOPIC)
LEADER_EPOCH = LeaderEpoch(20)
PARTITION_EPOCH = PartitionEpoch(30)
BROKER_EPOCH = 40  # broker n is of epoch 40 + n
NEXT_OFFSET = 100  # greater than every epoch above
NOW = Instant(0)
NO_DIRECTORY = Uuid(bytes(16))
HOME, SPARE, OTHER = ([Uuid(bytes([node, which] * 8)) for node in range(8)] for which in (1, 2, 3))  # by broker


class State(NamedTuple):
    replicas: Ids
    isr: Ids
    elr: Ids
    last_known: Ids
    last_leader: int
    leader: int
    recovery: int
    adding: Ids
    removing: Ids
    statuses: Ids  # of brokers 1, 2, …
    places: Ids  # of their replicas
    min_isr: int  # as configured
    strategy: int  # of this moment: states that are reached differ in more than that
    lossy: int
    remembers: bool
    known_min: int

    def lives(self, node: int) -> bool:
        """May its replica lead, or come into the ISR?"""
        return self.statuses[node - 1] == ACTIVE and self.places[node - 1] != AWAY

    def effective(self, min_isr: int) -> int:
        """T19, in words of our own: replicas that are only being added do not count yet."""
        there = len(self.replicas) - len(self.adding)
        return max(1, min(min_isr, there) if there else 1)

    @property
    def effective_min_isr(self) -> int:
        return self.effective(self.min_isr)


def initial(setup: Setup) -> State:
    replicas = tuple(range(1, setup.size + 1))
    statuses = (ACTIVE,) * setup.brokers
    first = State(
        replicas=replicas,
        isr=replicas,
        elr=(),
        last_known=(),
        last_leader=NO_ONE,
        leader=1,
        recovery=RECOVERED,
        adding=(),
        removing=(),
        statuses=statuses,
        places=(HERE,) * setup.brokers,
        min_isr=setup.min_isr,
        strategy=setup.strategies[0],
        lossy=0,
        remembers=True,
        known_min=0,
    )
    return first._replace(known_min=first.effective_min_isr)


def broker_of(node: int, status: int, log_dirs: tuple[Uuid, ...] = ()) -> Broker:
    return Broker(
        node_id=NodeId(node),
        incarnation_id=Uuid(bytes([node] * 16)),
        epoch=BrokerEpoch(BROKER_EPOCH + node),
        endpoints={},
        fenced=status in (FENCED, STOPPED),
        in_controlled_shutdown=status in (LEAVING, STOPPED),
        log_dirs=log_dirs,
    )


def status_of(broker: Broker | None) -> int:
    if broker is None:
        return GONE
    if broker.fenced:
        return STOPPED if broker.in_controlled_shutdown else FENCED
    return LEAVING if broker.in_controlled_shutdown else ACTIVE


REGISTERED = (FENCED, ACTIVE, LEAVING, STOPPED)
BROKERS = {(n, s): broker_of(n, s) for n in range(1, 8) for s in REGISTERED}
STORING = {
    (n, s, place): broker_of(n, s, (SPARE[n],) if place == AWAY else (HOME[n], SPARE[n]))
    for n in range(1, 8)
    for s in REGISTERED
    for place in (HERE, AWAY, UNREPORTED)
}


def named(ids: Ids) -> tuple[NodeId, ...]:
    return ids  # type: ignore[return-value]  # the same values, in the core's words


def partition_of(state: State, setup: Setup) -> Partition:
    directories = (NO_DIRECTORY,) * len(state.replicas)
    if setup.directories:
        directories = tuple(
            UNASSIGNED_DIRECTORY if state.places[n - 1] == UNREPORTED else HOME[n] for n in state.replicas
        )
    # The order of before a move is in no state: it decides nothing that is judged. So it is taken as it is now.
    before = tuple(n for n in state.replicas if n not in state.adding) if state.adding or state.removing else ()
    return Partition(
        replicas=named(state.replicas),
        original_replicas=named(before),
        directories=directories,
        isr=named(state.isr),
        leader=NodeId(state.leader),
        leader_epoch=LEADER_EPOCH,
        partition_epoch=PARTITION_EPOCH,
        leader_recovery_state=state.recovery,
        removing_replicas=named(state.removing),
        adding_replicas=named(state.adding),
        elr=named(state.elr),
        last_known_elr=named(state.last_known),
        last_known_leader=NodeId(state.last_leader),
    )


def image_of(state: State, setup: Setup) -> Image:
    image = Image()
    for node, status in enumerate(state.statuses, 1):
        if status == GONE:
            continue
        if setup.directories:
            image.brokers[NodeId(node)] = STORING[node, status, state.places[node - 1]]
        else:
            image.brokers[NodeId(node)] = BROKERS[node, status]
    image.features[METADATA_VERSION] = METADATA_LEVEL
    if setup.elr:
        image.features[ELR_FEATURE] = 1
    image.topics[TOPIC_ID] = Topic(TOPIC, TOPIC_ID, {})
    image.topic_ids[TOPIC] = TOPIC_ID
    image.configs[RESOURCE] = {MIN_ISR_KEY: str(state.min_isr), STRATEGY_KEY: STRATEGIES[state.strategy]}
    image.put_partition(AT, partition_of(state, setup))
    return image


def places_of(image: Image, partition: Partition, brokers: int) -> Ids:
    return tuple(place_of(image, partition, NodeId(node)) for node in range(1, brokers + 1))


def place_of(image: Image, partition: Partition, node: NodeId) -> int:
    """Who has no replica, or is registered no more, is HERE; it says nothing of them."""
    if node not in partition.replicas:
        return HERE
    directory = directory_of(partition, node)
    if directory == UNASSIGNED_DIRECTORY:
        return UNREPORTED
    broker = image.brokers.get(node)
    return HERE if broker is None or broker.is_online(directory) else AWAY


# --- one state for all that differ in names only


def renaming(state: State, symmetry: bool) -> Ids:
    """The new name of broker n is at place n; 0 is nobody's."""
    others = [n for n in range(1, len(state.statuses) + 1) if n not in state.replicas]
    others.sort(key=lambda n: state.statuses[n - 1])
    replicas: Iterable[int] = state.replicas
    if symmetry:
        replicas = sorted(state.replicas, key=lambda n: likeness(state, n))
    new = [0] * (len(state.statuses) + 1)
    for name, node in enumerate((*replicas, *others), 1):
        new[node] = name
    return tuple(new)


def likeness(state: State, node: int) -> tuple[bool | int, ...]:
    """Replicas that are equal in this may change their places. Those on their way out stand last in any order."""
    status = state.statuses[node - 1]
    return (
        node in state.removing,
        node != state.leader,
        node != state.last_leader,
        node not in state.isr,
        node not in state.elr,
        node not in state.last_known,
        node in state.adding,
        status & 1 == 0,
        status & 2 == 0,
        status & 4 == 0,
        state.places[node - 1],
    )


def renamed(state: State, new: Ids, symmetry: bool) -> State:
    def names(ids: Ids) -> Ids:
        found = [new[n] for n in ids]
        return tuple(sorted(found)) if symmetry else tuple(found)

    statuses, places = [0] * len(state.statuses), [0] * len(state.statuses)
    for node, status in enumerate(state.statuses, 1):
        statuses[new[node] - 1] = status
        places[new[node] - 1] = state.places[node - 1]
    return State(
        replicas=names(state.replicas),
        isr=names(state.isr),
        elr=names(state.elr),
        last_known=names(state.last_known),
        last_leader=new[state.last_leader] if state.last_leader > 0 else NO_ONE,
        leader=new[state.leader] if state.leader > 0 else NO_ONE,
        recovery=state.recovery,
        adding=names(state.adding),
        removing=names(state.removing),
        statuses=tuple(statuses),
        places=tuple(places),
        min_isr=state.min_isr,
        strategy=state.strategy,
        lossy=state.lossy,
        remembers=state.remembers,
        known_min=state.known_min,
    )


def led_by(state: State, first: int) -> State:
    """The same state with another preferred leader. Sets keep the replicas' order."""
    replicas = (first, *(n for n in state.replicas if n != first))
    isr, elr, last_known = (tuple(n for n in replicas if n in ids) for ids in (state.isr, state.elr, state.last_known))
    return state._replace(replicas=replicas, isr=isr, elr=elr, last_known=last_known)
