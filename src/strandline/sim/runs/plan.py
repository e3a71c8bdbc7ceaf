"""What a run does, as data: a plan follows from its seed, can be written down, made smaller, and run again.

Each fault has a random stream of its own, so that leaving one out changes nothing in what the others draw.
"""

from random import Random

import msgspec
from msgspec import structs

from strandline.base.value import Value
from strandline.replica.serving.selection import RACK_AWARE
from strandline.sim.runs.drawn import cold, in_steps, secured
from strandline.sim.runs.grouped import REBALANCING, has_groups, with_groups
from strandline.sim.runs.transactional import TRANSACTIONAL, has_transactions, with_transactions
from strandline.sim.world.options import Options, draw_options

READING, COMPACTED, LASTING, MEMBERS, STRAINED = "reading", "compacted", "compacted, lasting", "members", "strained"
UNDRAWN = (
    READING,
    COMPACTED,
    LASTING,
    MEMBERS,
    STRAINED,
    *TRANSACTIONAL,
    REBALANCING,
)  # workloads that are drawn apart
OVERLAPPING = (  # of the scripted faults: those that need no plan of their own
    "ping pong",
    "held records",
    "held divergence",
    "held proposal",
    "late joiner",
    "lost term",
    "split vote",
    "two in a row",
)
OFTEN = ("forked", "split vote", "eligible taken away")
APART = (*OVERLAPPING, *OFTEN, *OFTEN, "late heartbeats", "last replica", "kindled")
APART_MS = (2500, 5000)  # between two of them where they come alone
QUIET_MS = 1500  # the workload alone, before the first fault
FIRST_READING = 101  # seeds before it are those that planted bugs are recorded with
FIRST_STRANGE = 101  # likewise
FIRST_RARE = 301  # likewise, of what was drawn later
FIRST_LATE = 100_001  # likewise, of what was drawn last
FIRST_LASTING = 22_000_001  # seeds before it are those that plans and regressions are recorded with


class Fault(Value, frozen=True):
    at_ms: int  # since the unsafe phase began
    kind: str  # a row of `faults.TABLE`
    salt: int  # of its random stream


class Plan(Value, frozen=True):
    seed: int
    options: Options
    faults: tuple[Fault, ...]


def draw_plan(seed: int) -> Plan:
    from strandline.sim.faults.table import FAULTS
    from strandline.sim.workloads.table import WORKLOADS

    rng = Random(f"{seed} plan")
    options = draw_options(rng, tuple(FAULTS), tuple(name for name in WORKLOADS if name not in UNDRAWN))
    weights = [FAULTS[kind].weight for kind in options.faults]
    at = QUIET_MS
    faults: list[Fault] = []
    while at < options.span_ms:
        kind = rng.choices(options.faults, weights)[0]
        faults.append(Fault(at, kind, len(faults)))
        at += int(rng.expovariate(1 / options.pause_ms)) + 1
    faults += draw_moves(seed, options, len(faults))
    if has_elr(seed):
        options = with_elr(seed, options)
        faults += draw_eligible(seed, options, len(faults))
    options, more = draw_overlaps(seed, options, len(faults))
    faults += more
    faults += draw_damaged(seed, options, len(faults))
    faults += draw_damaged_metadata(seed, options, len(faults))
    options, more = draw_recoveries(seed, options, len(faults))
    faults += more
    faults += draw_rare(seed, options, len(faults))
    options, more = draw_directories(seed, options, len(faults))
    faults += more
    faults += draw_flips(seed, options, len(faults))
    if seed >= FIRST_LATE:
        faults += draw_kindled(seed, options, len(faults))
        if is_scripted(seed):
            options, faults = draw_scripts(seed, options)
    plan = Plan(seed, options, tuple(sorted(faults, key=lambda fault: fault.at_ms)))
    if compacts(seed):
        plan = with_compaction(plan)
    if has_members(seed):
        plan = with_members(plan)
    if is_strained(seed):
        plan = with_workload(plan, STRAINED)
    if has_transactions(seed):
        plan = in_transactions(plan)
    plan = with_reading(plan) if reads_followers(seed) else plan
    plan = structs.replace(plan, options=in_steps(seed, cold(seed, secured(seed, plan.options))))
    if has_groups(seed):
        plan = structs.replace(plan, options=with_groups(seed, plan.options))
    return with_stranger(plan) if meets_stranger(seed) else plan


def draw_moves(seed: int, options: Options, salt: int) -> list[Fault]:
    """In some runs partitions move to other replicas meanwhile, and leaders are elected by hand."""
    from strandline.sim.faults.table import MOVES

    rng = Random(f"{seed} moves")
    if rng.randrange(3):
        return []
    kinds = rng.choices(tuple(MOVES), [kind.weight for kind in MOVES.values()], k=rng.randrange(1, 9))
    return [Fault(rng.randrange(QUIET_MS, options.span_ms), kind, salt + i) for i, kind in enumerate(kinds)]


def has_elr(seed: int) -> bool:
    """Drawn apart, and not for the first seeds, as below."""
    return seed >= FIRST_READING and Random(f"{seed} elr").randrange(3) > 0


def with_elr(seed: int, options: Options) -> Options:
    """In half of the runs the recovery of partitions without an eligible leader is managed."""
    is_managed = Random(f"{seed} recovery").randrange(2) == 0
    settings = {"unclean.recovery.manager.enabled": "true", "unclean.recovery.timeout.ms": "2000"} if is_managed else {}
    return structs.replace(options, elr=True, settings=options.settings | settings)


def draw_eligible(seed: int, options: Options, salt: int) -> list[Fault]:
    """What Eligible Leader Replicas are there for."""
    from strandline.sim.faults.table import ELIGIBLE

    rng = Random(f"{seed} eligible")
    kinds = rng.choices(tuple(ELIGIBLE), [kind.weight for kind in ELIGIBLE.values()], k=rng.randrange(5))
    return [Fault(rng.randrange(QUIET_MS, options.span_ms), kind, salt + i) for i, kind in enumerate(kinds)]


def draw_overlaps(seed: int, options: Options, salt: int) -> tuple[Options, list[Fault]]:
    """What goes wrong only where two things overlap that seldom do, each in some of the runs: syncs that last while the
    log is written and cut; answers that overtake metadata, records that come in the next term, and votes about which
    voters differ; snapshots at every record while replicas move; deletion of records again and again."""
    from strandline.sim.faults.table import MOVES, SCRIPTED

    if seed < FIRST_READING:
        return options, []
    rng = Random(f"{seed} overlaps")
    kinds: list[str] = []
    if rng.randrange(3) == 0:
        options = structs.replace(options, sync_ms=rng.choice((30, 60, 120)))
    if rng.randrange(3) == 0:
        kinds += rng.choices(OVERLAPPING, k=rng.randrange(1, 4))
    if rng.randrange(4) == 0:
        eager = {"metadata.log.max.record.bytes.between.snapshots": "1"}
        options = structs.replace(options, settings=options.settings | eager)
        kinds += rng.choices(tuple(MOVES), [kind.weight for kind in MOVES.values()], k=rng.randrange(3, 9))
    if rng.randrange(4) == 0:
        kinds += ["trim"] * rng.randrange(3, 11)
    assert all(kind in SCRIPTED for kind in OVERLAPPING)
    return options, [Fault(rng.randrange(QUIET_MS, options.span_ms), kind, salt + i) for i, kind in enumerate(kinds)]


def compacts(seed: int) -> bool:
    return seed >= FIRST_READING and Random(f"{seed} compaction").randrange(4) == 0


def draw_damaged(seed: int, options: Options, salt: int) -> list[Fault]:
    """In a third of the runs somebody damages files."""
    from strandline.sim.faults.table import DAMAGED

    rng = Random(f"{seed} damaged")
    if seed < FIRST_READING or rng.randrange(3):
        return []
    kinds = rng.choices(tuple(DAMAGED), [kind.weight for kind in DAMAGED.values()], k=rng.randrange(1, 4))
    return [Fault(rng.randrange(QUIET_MS, options.span_ms), kind, salt + i) for i, kind in enumerate(kinds)]


def draw_damaged_metadata(seed: int, options: Options, salt: int) -> list[Fault]:
    """In a third of the runs the metadata of a voter is damaged, once or more often."""
    rng = Random(f"{seed} damaged metadata")
    if seed < FIRST_READING or rng.randrange(3):
        return []
    times = sorted(rng.randrange(QUIET_MS, options.span_ms) for _ in range(rng.randrange(2, 6)))
    kinds = rng.choices(("damaged metadata", "stale metadata"), (2, 1), k=len(times))
    return [Fault(at, kind, salt + i) for i, (at, kind) in enumerate(zip(times, kinds, strict=True))]


def draw_recoveries(seed: int, options: Options, salt: int) -> tuple[Options, list[Fault]]:
    """In one in three of the runs with ELR partitions lose all who may lead them, and recoveries are managed: what
    decides then is hardly ever asked otherwise."""
    from strandline.sim.faults.table import RECOVERIES

    rng = Random(f"{seed} recoveries")
    if seed < FIRST_RARE or not options.elr or rng.randrange(3):
        return options, []
    managed = {"unclean.recovery.manager.enabled": "true", "unclean.recovery.timeout.ms": "1000"}
    options = structs.replace(options, is_ruthless=True, settings=options.settings | managed)
    kinds = rng.choices(tuple(RECOVERIES), [kind.weight for kind in RECOVERIES.values()], k=rng.randrange(6, 15))
    if seed >= FIRST_LATE:
        kinds += ["forked"] * 3
    return options, [Fault(rng.randrange(QUIET_MS, options.span_ms), kind, salt + i) for i, kind in enumerate(kinds)]


def draw_rare(seed: int, options: Options, salt: int) -> list[Fault]:
    """What comes in numbers in some runs only: proposals that no leader makes, and heartbeats that come late (one in
    three each); and with ELR other min ISRs and the feature switched while somebody is eligible, or while nobody is in
    sync (one in five)."""
    if seed < FIRST_RARE:
        return []
    rng = Random(f"{seed} rare")
    kinds: list[str] = []
    if rng.randrange(3) == 0:
        kinds += ["absurd proposal"] * rng.randrange(20, 40)
    if rng.randrange(5) == 0 and options.elr:
        kinds += rng.choices(("last replica", "min ISR while eligible", "switch ELR"), k=rng.randrange(3, 8))
    if seed >= FIRST_LATE and rng.randrange(3) == 0:
        kinds += ["late heartbeats"] * rng.randrange(2, 6)
    return [Fault(rng.randrange(QUIET_MS, options.span_ms), kind, salt + i) for i, kind in enumerate(kinds)]


def draw_directories(seed: int, options: Options, salt: int) -> tuple[Options, list[Fault]]:
    """In one in three of the runs machines have two log directories or three, and single ones fill up, fail, and are
    others, around stops that are in order."""
    from strandline.sim.faults.table import DIRECTORIES

    rng = Random(f"{seed} directories")
    if seed < FIRST_RARE or rng.randrange(3):
        return options, []
    options = structs.replace(options, log_dirs=rng.choice((2, 3)))
    kinds = rng.choices(tuple(DIRECTORIES), [kind.weight for kind in DIRECTORIES.values()], k=rng.randrange(3, 9))
    return options, [Fault(rng.randrange(QUIET_MS, options.span_ms), kind, salt + i) for i, kind in enumerate(kinds)]


def draw_flips(seed: int, options: Options, salt: int) -> list[Fault]:
    """In one in three of the runs bits flip on the wire."""
    rng = Random(f"{seed} flips")
    if seed < FIRST_RARE or rng.randrange(3):
        return []
    times = [rng.randrange(QUIET_MS, options.span_ms) for _ in range(rng.randrange(1, 5))]
    return [Fault(at, "flipped", salt + i) for i, at in enumerate(times)]


def draw_kindled(seed: int, options: Options, salt: int) -> list[Fault]:
    """In one in three of the runs the power fails just behind a cut or a swap."""
    rng = Random(f"{seed} kindled")
    if rng.randrange(3):
        return []
    times = [rng.randrange(QUIET_MS, options.span_ms) for _ in range(rng.randrange(2, 7))]
    return [Fault(at, "kindled", salt + i) for i, at in enumerate(times)]


def is_scripted(seed: int) -> bool:
    return Random(f"{seed} scripts").randrange(3) == 0


def draw_scripts(seed: int, options: Options) -> tuple[Options, list[Fault]]:
    """In one in three of the runs scripted faults come alone, and far apart: among others they seldom get to their end.
    With ELR recoveries are managed there."""
    rng = Random(f"{seed} scripted")
    if options.elr:
        managed = {"unclean.recovery.manager.enabled": "true", "unclean.recovery.timeout.ms": "1000"}
        options = structs.replace(options, is_ruthless=True, settings=options.settings | managed)
    at = QUIET_MS
    faults: list[Fault] = []
    while at < options.span_ms + APART_MS[0]:
        faults.append(Fault(at, rng.choice(APART), len(faults)))
        at += rng.randrange(*APART_MS)
    return structs.replace(options, span_ms=at), faults


def has_members(seed: int) -> bool:
    return seed >= FIRST_RARE and Random(f"{seed} members").randrange(4) == 0


def with_members(plan: Plan) -> Plan:
    """The same with a group whose members come and go. Where requests come twice a commit may, too, and a group's
    position goes back: nothing could be asked of it."""
    if plan.options.weather.duplicated_permille:
        return plan
    hasty = {"group.min.session.timeout.ms": "100", "group.initial.rebalance.delay.ms": "50"}
    rng, faults = Random(f"{plan.seed} expiring"), plan.faults
    if rng.randrange(2) == 0:  # offsets grow old at once
        hasty |= {"offsets.retention.minutes": "2", "offsets.retention.check.interval.ms": "200"}
        faults += (Fault(rng.randrange(QUIET_MS, plan.options.span_ms), "long jump", len(faults)),)
    options = structs.replace(plan.options, settings=plan.options.settings | hasty)
    ordered = tuple(sorted(faults, key=lambda fault: fault.at_ms))
    return with_workload(structs.replace(plan, options=options, faults=ordered), MEMBERS)


def is_strained(seed: int) -> bool:
    """One in four: odd producers, a topic's own codec, flushes by the number of records, records that go at once."""
    return seed >= FIRST_RARE and Random(f"{seed} strained").randrange(4) == 0


def with_workload(plan: Plan, name: str) -> Plan:
    options = structs.replace(plan.options, workloads=(*plan.options.workloads, name))
    return structs.replace(plan, options=options)


def in_transactions(plan: Plan) -> Plan:
    """The same with transactions; in half of the runs their markers come late a second time, now and then."""
    rng, faults = Random(f"{plan.seed} late markers"), list(plan.faults)
    if rng.randrange(2):
        times = [rng.randrange(QUIET_MS, plan.options.span_ms) for _ in range(rng.randrange(1, 5))]
        faults += [Fault(at, "late markers", len(faults) + i) for i, at in enumerate(times)]
    ordered = tuple(sorted(faults, key=lambda fault: fault.at_ms))
    return structs.replace(plan, options=with_transactions(plan.seed, plan.options), faults=ordered)


def reads_followers(seed: int) -> bool:
    """Drawn apart, and not for the first seeds: racks change where replicas are placed, and so all that a seed that is
    kept for its bug would meet."""
    return seed >= FIRST_READING and Random(f"{seed} reading").randrange(6) == 0


def with_reading(plan: Plan) -> Plan:
    """The same with consumers that read from followers."""
    options = plan.options
    chosen = structs.replace(
        options,
        racks=min(3, options.brokers),
        settings=options.settings | {"replica.selector.class": RACK_AWARE},
        workloads=(*options.workloads, READING),
    )
    return structs.replace(plan, options=chosen)


def meets_stranger(seed: int) -> bool:
    """Drawn apart, and not for the first seeds, as above."""
    return seed >= FIRST_STRANGE and Random(f"{seed} strange").randrange(4) == 0


def with_stranger(plan: Plan) -> Plan:
    """The same while somebody sends hostile numbers to every listener."""
    pause_ms = Random(f"{plan.seed} stranger").choice((5, 20, 20, 60))
    return structs.replace(plan, options=structs.replace(plan.options, stranger_ms=pause_ms))


def with_compaction(plan: Plan) -> Plan:
    """The same with a compacted topic and a cleaner that never rests."""
    eager = {"log.cleaner.backoff.ms": "50", "log.cleaner.min.cleanable.ratio": "0.01", "log.roll.ms": "300"}
    options = plan.options
    workload = LASTING if plan.seed >= FIRST_LASTING else COMPACTED
    chosen = structs.replace(
        options,
        settings=options.settings | eager | {"log.retention.check.interval.ms": "200"},
        workloads=(*options.workloads, workload),
    )
    return structs.replace(plan, options=chosen)


def write_plan(plan: Plan) -> bytes:
    return msgspec.json.format(msgspec.json.encode(plan), indent=1)


def read_plan(content: bytes) -> Plan:
    """Raises msgspec.MsgspecError with a text for people."""
    return msgspec.json.decode(content, type=Plan)
