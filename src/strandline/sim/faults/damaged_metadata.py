"""The metadata files of one voter are damaged while it is down.

A part of the log is gone, or a snapshot, or all but `quorum-state`, or that file itself; or log and snapshots are what
they were some time ago; or a snapshot has another one's content; or a batch has other records, which nobody can apply,
and a checksum that is right. A quorum bears this of one voter at a time: all others run, are reached and are whole, and
the next fault of this kind waits until it is whole again. So it is in ruthless runs, since otherwise the quorum could
promise nothing. What is cut was known to be committed: of the last moments before a kill nothing on the disk says that
they were there.
"""

from collections.abc import Mapping, Sequence
from random import Random

from strandline.base.ids import OFFSET_MAX, Uuid
from strandline.metadata.features import METADATA_LEVEL, METADATA_VERSION
from strandline.metadata.framing import encode_record
from strandline.metadata.records import (
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from strandline.quorum.elections.election_state import SHORT, decode_quorum_state
from strandline.quorum.storage.metadata_log import DIRECTORY, QUORUM_STATE, parse_snapshot_name
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.scripted import when
from strandline.sim.laws.cluster.votes import has_a_say_for_good
from strandline.sim.world.disk import Image
from strandline.sim.world.machine import METADATA_DIR, Machine
from strandline.wire.batch import BatchHeader, batches, build
from strandline.wire.schema import Message

FOLDER = f"{METADATA_DIR}/{DIRECTORY}"
STATE = f"{FOLDER}/{QUORUM_STATE}"
BACK_MS = (0, 300, 1500, 4000)
DOWN_MS_MAX = 9000  # where nothing can be damaged, it is started all the same
UNFIT = "with a record that does not fit"
OLDER, OTHER = "what it was some time ago", "with a snapshot that is another one"
ACTS = ("truncated", "truncated", "without its snapshot", "emptied", "without its votes", UNFIT, UNFIT)
AGE_MS = (50, 1000, 4000)  # how old what comes back is


def voters_of(injector: FaultInjector) -> list[Machine]:
    machines = injector.world.machines
    known = {voter for machine in machines.values() if machine.node is not None for voter in machine.node.voters}
    return [machines[voter] for voter in sorted(known)]


def is_whole(injector: FaultInjector, machine: Machine) -> bool:
    if machine.node is None or machine.is_paused or any(machine.name in cut for cut in injector.world.network.cuts):
        return False
    return machine.is_running and has_a_say_for_good(machine.node.quorum)


def damaged_metadata(injector: FaultInjector, rng: Random) -> None:
    strike_one(injector, rng, ACTS)


def stale_metadata(injector: FaultInjector, rng: Random) -> None:
    strike_one(injector, rng, (OLDER, OTHER))


def strike_one(injector: FaultInjector, rng: Random, acts: Sequence[str]) -> None:
    voters = voters_of(injector)
    if len(voters) < 3:
        return
    machine = rng.choice(voters)
    act, back, is_killed = rng.choice(acts), rng.choice(BACK_MS), rng.randrange(2) == 0
    others = [voter for voter in voters if voter is not machine]
    old = files_of(machine)

    def strike() -> None:
        if not machine.is_running and machine.is_powered:
            damage(injector, rng, machine, act, old)
        injector.later(back, machine.start)

    def stop() -> None:
        if is_killed and injector.may_be_killed(machine):
            machine.kill()
        else:
            injector.shut_down(machine)
        when(injector, lambda: not machine.is_running and all(is_whole(injector, other) for other in others), strike)
        injector.later(DOWN_MS_MAX, machine.start)

    def begin() -> None:
        when(injector, lambda: all(is_whole(injector, voter) for voter in voters), stop)

    injector.later(rng.choice(AGE_MS), begin) if act == OLDER else begin()


def lost_majority(injector: FaultInjector, rng: Random) -> None:
    """The controller and one other voter commit metadata. The files of that one are damaged while it is down, and then
    it is alone with the third, which has none of it: two of three, and neither may be elected. No seed draws this: it
    takes away all of a quorum but one damaged voter."""
    first = injector.world.controller()
    voters = [voter for voter in voters_of(injector) if voter is not first]
    if first is None or len(voters) != 2 or not all(is_whole(injector, voter) for voter in (first, *voters)):
        return
    second, third = voters if rng.randrange(2) else voters[::-1]
    injector.note(f"{second.name} is to lose metadata that only {first.name} has beside it")
    third.kill()

    def stop_second() -> None:
        injector.shut_down(second)
        when(injector, lambda: not second.is_running, strike)

    def strike() -> None:
        first.kill()
        damage(injector, rng, second, "truncated")
        second.start()
        third.start()
        injector.later(2500, first.start)

    injector.later(1000, stop_second)


def files_of(machine: Machine) -> dict[str, bytes]:
    entries = machine.disk.snapshot().entries
    return {path: data for path, data in entries.items() if path.startswith(f"{FOLDER}/") and data is not None}


def end_of(files: Mapping[str, bytes]) -> int:
    logs = [data for path, data in files.items() if path.endswith(".log")]
    return max((header.last_offset + 1 for data in logs for header in batches(memoryview(data))), default=0)


def damage(
    injector: FaultInjector, rng: Random, machine: Machine, act: str, old: Mapping[str, bytes] | None = None
) -> None:
    """`old`: its files some time ago."""
    entries = machine.disk.snapshot().entries
    files = files_of(machine)
    state = files.get(STATE)
    applied = decode_quorum_state(state, STATE)[1] if state is not None else 0
    if state is None or not 0 <= applied < SHORT:
        return
    names = {path: parse_snapshot_name(path.rpartition("/")[2]) for path in files}
    snapshots = {path: snapshot for path, snapshot in names.items() if snapshot is not None}
    below = max((snapshot.end_offset for snapshot in snapshots.values()), default=0)
    segments = [path for path in sorted(files) if path.endswith(".log")]
    if not segments:
        return  # it was emptied before, and did not run since
    changed: dict[str, bytes | None] = {}
    if act == "truncated" and below < applied:
        last = segments[-1]
        found = [header for header in batches(memoryview(files[last])) if header.base_offset < applied]
        if found:
            header = rng.choice(found)
            changed[last] = files[last][: rng.randrange(header.position, header.end)]
    elif act == OLDER and old and end_of(old) < applied:
        changed = {**dict.fromkeys(files), **old, STATE: state}
    elif act == "without its snapshot" and len(snapshots) > 1:
        changed[max(snapshots)] = None
    elif act == OTHER and len(snapshots) > 1:
        first, last = min(snapshots), max(snapshots)
        both = {first: files[last], last: files[first]}
        changed = {path: both[path] for path in rng.choice(((first,), (last,), (first, last)))}
    elif act == "emptied" and applied:
        changed = dict.fromkeys((path for path in files if path != STATE), None)
    elif act == "without its votes":
        changed[STATE] = None
    elif act == UNFIT:
        last = segments[-1]
        # What a snapshot already says is not applied again, and nobody looks at it.
        found = [h for h in batches(memoryview(files[last])) if not h.is_control and h.base_offset >= below]
        if found:
            header = rng.choice(found)
            changed[last] = files[last][: header.position] + unfit(rng, header) + files[last][header.end :]
    if not changed:
        return
    injector.note(f"the metadata of {machine.name} is {act}: {', '.join(changed)}")
    injector.world.seen[f"metadata {act}"] += 1
    injector.world.laws.votes.damaged(machine)
    kept = {path: data for path, data in entries.items() if path not in changed}
    machine.disk.restore(Image(kept | {path: data for path, data in changed.items() if data is not None}))


def unfit(rng: Random, header: BatchHeader) -> bytes:
    """As many records in place of those, of which one at least cannot be applied."""
    nobody = Uuid(rng.randbytes(16))
    records: tuple[Message, ...] = (
        NoOpRecord(),
        PartitionChangeRecord(topic_id=nobody, partition_id=0, isr=(1,)),
        PartitionRecord(topic_id=nobody, partition_id=0, replicas=(1,), isr=(1,), leader=1),
        RemoveTopicRecord(topic_id=nobody),
        TopicRecord(name="../elsewhere", topic_id=nobody),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=OFFSET_MAX),
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_LEVEL + 1),
        EndTransactionRecord(),
    )
    unknown = b"\x01\x7f\x00"  # a kind of record that nobody has written so far
    values = [rng.choice([unknown, *map(encode_record, records)]) for _ in range(header.record_count - 1)]
    values.insert(rng.randrange(header.record_count), rng.choice([unknown, *map(encode_record, records[1:])]))
    drafts = [(header.max_timestamp, None, value, ()) for value in values]
    return build(drafts, base_offset=header.base_offset, leader_epoch=header.partition_leader_epoch)
