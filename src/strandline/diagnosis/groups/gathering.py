"""What `strandline explain --group` must know of a group, asked for; `diagnosis.groups.progress` judges it."""

import time
from collections.abc import Iterable

from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC
from strandline.client.admin.groups.described import Described, GroupState
from strandline.client.admin.groups.finding import asked_for, missing
from strandline.client.admin.groups.offsets import Position
from strandline.client.admin.groups.positions import positions, topics_of
from strandline.client.admin.groups.states import coordinators_of
from strandline.client.admin.open_transactions import Held, holders
from strandline.client.admin.partitions import PartitionState, Place, existing_partitions
from strandline.client.admin.replica_logs import ask_replicas
from strandline.client.brokers import BrokerAt, Silence, brokers_of
from strandline.client.cluster import Cluster as Connected
from strandline.client.config import ClientConfig
from strandline.coordination.partitioning import partition_for
from strandline.diagnosis.groups.facts import WATCHED_S, GroupFacts
from strandline.diagnosis.groups.reading import is_held

HIDDEN = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INVALID_GROUP_ID)


def gathered(config: ClientConfig, options: str, group_id: str) -> GroupFacts:
    """Takes WATCHED_S if there is something to read. Raises StrandlineError if there is no such group, or we may
    not see it. `options`: what a command needs to reach the cluster."""
    brokers = brokers_of(config)
    answer = asked_for(config, brokers, [group_id])[group_id]
    if isinstance(answer, ErrorCode) and answer in HIDDEN:
        missing(group_id, answer, options)
    facts = GroupFacts(
        group_id=group_id,
        answer=answer,
        coordinator=coordinator_of(config, group_id, answer),
        keeper=keeper_of(config, group_id),
        brokers=brokers,
        options=options,
    )
    return with_positions(config, facts, answer, brokers) if isinstance(answer, GroupState) else facts


def coordinator_of(config: ClientConfig, group_id: str, answer: Described) -> int:
    if isinstance(answer, GroupState):
        return answer.coordinator
    if not isinstance(answer, Silence) and answer is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return -1
    node = coordinators_of(config, [group_id])[group_id]
    return -1 if isinstance(node, ErrorCode) else node


def keeper_of(config: ClientConfig, group_id: str) -> PartitionState | None:
    states = existing_partitions(config, [OFFSETS_TOPIC])
    if not states:
        return None
    index = partition_for(group_id, len(states))
    return next((state for state in states if state.at.partition == index), None)


def with_positions(
    config: ClientConfig, facts: GroupFacts, state: GroupState, brokers: dict[int, BrokerAt]
) -> GroupFacts:
    """Offsets are watched only if there is something that should be read."""
    with Connected(config) as connected:
        subscribed = {topic for member in state.members for topic in member.subscribed}
        topics = subscribed | topics_of(connected, state)
        states = {row.at: row for row in existing_partitions(config, sorted(topics))}
        found = {at.topic for at in states}
        first = positions(connected, state, states)
        now = first
        if any(position.lag or position.committed is None for position in first):
            time.sleep(WATCHED_S)
            now = positions(connected, state, states)
    return replace(
        facts,
        positions=tuple(now),
        before=tuple(first) if now is not first else (),
        states=states,
        unknown=tuple(sorted(subscribed - found)),
        held=held_at(config, brokers, states, now),
    )


def held_at(
    config: ClientConfig, brokers: dict[int, BrokerAt], states: dict[Place, PartitionState], found: Iterable[Position]
) -> dict[Place, Held]:
    waiting = [states[position.at] for position in found if is_held(position) and position.at in states]
    if not waiting:
        return {}
    return holders(config, brokers, waiting, ask_replicas(waiting, brokers))
