"""Brokers come, live, shut down, and are fenced.

Registration gives a broker its epoch, the offset of the record that registers it. A new incarnation first leaves every
ISR of the old one, in the same batch, before its epoch is usable (T29). Heartbeats decide about fencing: a broker is
unfenced once it has replayed its own registration, and it may shut down once it leads nothing.

A log directory that a heartbeat calls offline is no longer one of the broker's (KIP-858). A replica of which a
registration or a heartbeat says that it lost records leaves ISR and ELR, it alone; before its broker is let in.

Invariants:
  - the broker epoch equals the offset of the registration's first record; the same incarnation keeps it (T25);
  - a broker that is fenced or shutting down leads nothing, and stays in an ISR only as its last member.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from strandline.base.effects import Endpoint
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.base.value import Value
from strandline.controller.basis import NOTHING, Basis, Departure, Plan
from strandline.controller.brokers.departing import plan_departure
from strandline.metadata.features import METADATA_VERSION, UNSUPPORTED
from strandline.metadata.image import Broker
from strandline.metadata.records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    LossEvent,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

Withdrawn = Mapping[TopicIdPartition, LossEvent]  # replicas of which their broker says that they lost records

FENCE, UNFENCE = 1, -1  # BrokerRegistrationChangeRecord.fenced
START_SHUTDOWN = 1
NEVER_REGISTERED = -2  # equals no previous broker epoch: -1 means that the broker knows of none


def plan_registration(request: BrokerRegistrationRequest, basis: Basis, is_alive: bool) -> Plan:
    """Admit an incarnation. `is_alive`: the registered one is in its session, and nothing speaks against it."""
    old = basis.image.brokers.get(NodeId(request.broker_id))
    why = why_not_registered(request, basis, old, is_alive)
    if why is not None:
        return Plan((), BrokerRegistrationResponse(error_code=why))
    assert request.broker_id >= 0
    if old is not None and old.incarnation_id == request.incarnation_id:  # guard: new-incarnation-keeps-the-epoch
        # A directory that failed does not come back within an incarnation: a request that still has it is late.
        request = replace(request, log_dirs=tuple(d for d in request.log_dirs if d in old.log_dirs))
        record = registration(request, old.epoch, old.fenced, old.in_controlled_shutdown, old.follows_on)
        gone = [directory for directory in old.log_dirs if directory not in request.log_dirs]
        withdrawn = basis.withdrawn(old.node_id, request.lost_replicas, registers=True)
        lost = basis.departure(old.node_id, False, gone, withdrawn)
        return Plan((*lost, record), BrokerRegistrationResponse(broker_epoch=old.epoch))
    # guard: unclean-stop-unnoticed
    is_clean = (NEVER_REGISTERED if old is None else old.epoch) == request.previous_broker_epoch
    node = NodeId(request.broker_id)
    withdrawn = basis.withdrawn(node, request.lost_replicas, registers=True)
    changes = basis.departure(node, lost_tail=not is_clean, withdrawn=withdrawn)  # guard: restart-leaves-the-isr-alone
    epoch = basis.next_offset + len(changes)
    assert old is None or epoch > old.epoch, "epochs are offsets of one log"
    follows_on = old is not None and old.incarnation_id == request.whole_after
    record = registration(request, epoch, fenced=True, in_controlled_shutdown=False, follows_on=follows_on)
    return Plan((*changes, record), BrokerRegistrationResponse(broker_epoch=epoch))


def why_not_registered(
    request: BrokerRegistrationRequest, basis: Basis, old: Broker | None, is_alive: bool
) -> ErrorCode | None:
    if basis.config.cluster_id and request.cluster_id != basis.config.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if old is not None and not old.fenced and is_alive and old.incarnation_id != request.incarnation_id:
        return ErrorCode.DUPLICATE_BROKER_REGISTRATION
    if request.broker_id < 0 or request.is_migrating_zk_broker:
        return ErrorCode.INVALID_REGISTRATION
    if len(set(request.log_dirs)) != len(request.log_dirs):
        return ErrorCode.INVALID_REGISTRATION
    taken = {
        directory
        for broker in basis.image.brokers.values()
        if broker.node_id != request.broker_id
        for directory in broker.log_dirs
    }
    if taken & set(request.log_dirs):
        return ErrorCode.INVALID_REGISTRATION
    known = {row.name: (row.min_supported_version, row.max_supported_version) for row in request.features}
    if METADATA_VERSION not in known:
        return ErrorCode.INVALID_REGISTRATION
    for name in (*known, *basis.image.features):
        low, high = known.get(name, UNSUPPORTED)
        if not low <= basis.image.features.get(name, 0) <= high:
            return ErrorCode.UNSUPPORTED_VERSION
    return None


def registration(
    request: BrokerRegistrationRequest, epoch: int, fenced: bool, in_controlled_shutdown: bool, follows_on: bool
) -> RegisterBrokerRecord:
    assert epoch >= 0
    assert len(set(request.log_dirs)) == len(request.log_dirs), "refused before"
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=tuple(
            BrokerEndpoint(name=at.name, host=at.host, port=at.port, security_protocol=at.security_protocol)
            for at in request.listeners
        ),
        features=tuple(
            BrokerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ),
        rack=request.rack,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=tuple(request.log_dirs),
        follows_on=follows_on,
    )


def takes_place_of(request: BrokerRegistrationRequest, old: Broker) -> bool:
    """Does a new incarnation hold what only one process can: the old one's endpoints and locked directories?"""
    endpoints = {at.name: Endpoint(at.host, at.port) for at in request.listeners}
    return bool(endpoints and request.log_dirs) and (endpoints, tuple(request.log_dirs)) == (
        old.endpoints,
        old.log_dirs,
    )


class Next(Value, frozen=True):
    """What a heartbeat makes of a broker."""

    fenced: bool
    shutting_down: bool = False
    should_shut_down: bool = False

    def __post_init__(self) -> None:
        assert self.fenced or not self.should_shut_down, "who may stop leads nothing any more"
        assert not (self.shutting_down and self.should_shut_down), "it goes on waiting, or stops"


def plan_heartbeat(request: BrokerHeartbeatRequest, basis: Basis) -> Plan:
    why = basis.why_stale(request.broker_id, request.broker_epoch)
    if why is not None:
        return Plan((), BrokerHeartbeatResponse(error_code=why))
    broker = basis.image.brokers[NodeId(request.broker_id)]
    assert broker.epoch == request.broker_epoch
    is_caught_up = request.current_metadata_offset >= broker.epoch
    is_leading = request.want_shut_down and leads(basis, broker.node_id)
    new = next_state(request, broker, is_caught_up, is_leading)
    is_departing = basis.is_departing(broker)
    if is_departing:
        new = Next(fenced=broker.fenced, shutting_down=request.want_shut_down)
    departure: Departure | None = None
    withdrawn = basis.withdrawn(broker.node_id, request.lost_replicas)
    records: tuple[object, ...] = ()
    lost = [directory for directory in request.offline_log_dirs if directory in broker.log_dirs]
    if lost:
        # First of all, for who leads there must lead no longer; what else there is to do, the next heartbeat does.
        records = plan_lost_directories(broker, lost, basis, withdrawn)
        new = Next(fenced=broker.fenced or len(lost) == len(broker.log_dirs))
    elif new.fenced and not broker.fenced:
        records, departure = plan_fencing(broker, basis, withdrawn, is_leaving=new.should_shut_down)
        if departure is not None:
            new = Next(fenced=False, shutting_down=request.want_shut_down)
    elif withdrawn:  # guard: let-in-before-its-losses-are-heard
        # Before it is let in, or it could be elected as if it had everything. The next heartbeat does the rest.
        records = tuple(basis.withdrawals(broker.node_id, withdrawn))
        new = Next(fenced=broker.fenced, shutting_down=broker.in_controlled_shutdown)
    elif broker.fenced and not new.fenced:
        records = (change_of(broker, fenced=UNFENCE), *basis.elections_after_unfencing(broker.node_id))
    elif (new.shutting_down or new.should_shut_down) and not (broker.in_controlled_shutdown or is_departing):
        # Also of one that is fenced: a heartbeat from before, which comes late, would let it in again.
        shutdown = change_of(broker, in_controlled_shutdown=START_SHUTDOWN)
        changes, departure = plan_departure(broker, shutdown, basis)
        records = (shutdown, *changes) if departure is None else changes
    cordoned = request.cordoned_log_dirs
    if cordoned is not None and set(cordoned) != set(broker.cordoned):
        record = BrokerRegistrationChangeRecord(
            broker_id=broker.node_id, broker_epoch=broker.epoch, cordoned_log_dirs=tuple(cordoned)
        )
        records = (*records, record)
    return Plan(
        records,
        BrokerHeartbeatResponse(is_caught_up=is_caught_up, is_fenced=new.fenced, should_shut_down=new.should_shut_down),
        departure,
    )


def next_state(request: BrokerHeartbeatRequest, broker: Broker, is_caught_up: bool, is_leading: bool) -> Next:
    assert not is_leading or not broker.fenced, "who is fenced leads nothing"
    if request.want_shut_down:
        if broker.fenced or request.want_fence or not is_leading:
            return Next(fenced=True, should_shut_down=True)
        return Next(fenced=False, shutting_down=True)
    if broker.in_controlled_shutdown:
        return Next(fenced=broker.fenced, shutting_down=True)  # A shutdown is not taken back.
    if request.want_fence:
        return Next(fenced=True)
    return Next(fenced=broker.fenced and not is_caught_up)


def leads(basis: Basis, node: NodeId) -> bool:
    assert node in basis.image.brokers
    return any(basis.at(at)[1].leader == node for at in basis.image.eligible.get(node, {}))


def plan_fencing(
    broker: Broker, basis: Basis, withdrawn: Withdrawn = NOTHING, *, is_leaving: bool = False
) -> tuple[tuple[object, ...], Departure | None]:
    """A broker is fenced: others lead what it led. Its log is still believed until it registers anew. Returns the first
    records, and what is to follow."""
    assert not broker.fenced
    shutdown = START_SHUTDOWN if is_leaving and not broker.in_controlled_shutdown else 0
    fence = change_of(broker, fenced=FENCE, in_controlled_shutdown=shutdown)
    changes, departure = plan_departure(broker, fence, basis, withdrawn)
    return (*changes, fence) if departure is None else changes, departure


def plan_lost_directories(broker: Broker, lost: list[Uuid], basis: Basis, withdrawn: Withdrawn) -> tuple[object, ...]:
    """Directories of a broker that lives on are offline: others lead what it led from there, and its replicas there
    leave the ISRs. Their logs are still believed, as those of a broker that is fenced. Without any directory left the
    broker can do nothing, and is about to end."""
    assert lost
    assert all(directory in broker.log_dirs for directory in lost)
    left = tuple(directory for directory in broker.log_dirs if directory not in lost)
    if not left:
        if broker.fenced:
            return tuple(basis.departure(broker.node_id, False, (), withdrawn))
        return (*basis.departure(broker.node_id, False, None, withdrawn), change_of(broker, fenced=FENCE))
    record = BrokerRegistrationChangeRecord(broker_id=broker.node_id, broker_epoch=broker.epoch, log_dirs=left)
    return (*basis.departure(broker.node_id, False, lost, withdrawn), record)  # guard: lost-directory-keeps-its-leaders


def change_of(broker: Broker, *, fenced: int = 0, in_controlled_shutdown: int = 0) -> BrokerRegistrationChangeRecord:
    assert fenced in (FENCE, 0, UNFENCE)
    assert in_controlled_shutdown in (0, START_SHUTDOWN)
    return BrokerRegistrationChangeRecord(
        broker_id=broker.node_id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )


def plan_unregistration(request: UnregisterBrokerRequest, basis: Basis) -> Plan:
    """A broker is given up for good, so it is neither in sync nor eligible anywhere (L4)."""
    broker = basis.image.brokers.get(NodeId(request.broker_id))
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        return Plan((), UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=message))
    changes = basis.departure(broker.node_id, lost_tail=True)  # guard: unregistering-loses-the-tail
    record = UnregisterBrokerRecord(broker_id=broker.node_id, broker_epoch=broker.epoch)
    return Plan((*changes, record), UnregisterBrokerResponse())
