"""What is wrong with a partition, why, what it waits for, and which ways there are out of it: facts in, findings out.

Nothing is asked here (`diagnosis.explaining` gathers the facts), and nothing is guessed: a broker that should answer
and does not is a missing fact. A finding needs action if it stays as it is until somebody does something.

  - A partition that nobody leads: `diagnosis.leaderless`.
  - One that is led, and has replicas out of sync: each is down, fenced, in a directory that is offline, on its way, or
    stuck; fewer in sync than min ISR is worse than that only for writers.
  - One that moves to other replicas waits for what the controller says.
"""

from typing import Any

from strandline.base.value import Value
from strandline.client.admin.behind import Behind
from strandline.client.admin.open_transactions import Held
from strandline.client.admin.partitions import PartitionState
from strandline.client.admin.replica_logs import LogReport, ReplicaLog, Unasked
from strandline.client.brokers import BrokerAt
from strandline.diagnosis.behind import words
from strandline.diagnosis.ledger_facts import NOTHING_WRITTEN, LedgerEntries, withdrawal_words
from strandline.diagnosis.partitions import numbers
from strandline.wire.messages.own.describe_losses import Loss

HEALTHY, ACTION, MISSING = 0, 2, 3  # what `explain` ends with
WATCHED_S = 3  # how long a replica is watched that is out of sync


class Facts(Value, frozen=True):
    state: PartitionState
    brokers: dict[int, BrokerAt]  # all that are registered
    reports: tuple[LogReport, ...] = ()  # what the replicas say of their logs, in their order
    moved: frozenset[int] = frozenset()  # replicas whose logs have grown since they were first asked
    behind: dict[int, Behind] | str = ""  # what followers out of sync lack, as their leader reports; or why it does not
    waits_for: str | None = None  # what a reassignment waits for, as the controller reports
    ledger: LedgerEntries = NOTHING_WRITTEN
    has_controller: bool = True  # does any broker reach an active one?
    held: Held | None = None  # by which transaction, if readers of what is committed wait for one
    options: str = ""  # that every command needs to reach this cluster


class WayOut(Value, frozen=True):
    what: str
    costs: str  # in records
    command: str


class Finding(Value, frozen=True):
    what: str  # in one line
    why: tuple[str, ...] = ()
    waits_for: str = ""
    needs_action: bool = False
    is_missing: bool = False  # is a fact missing that would change what is said?
    ways: tuple[WayOut, ...] = ()


class OutOfSync(Value, frozen=True):
    """A replica that is not in sync."""

    node: int
    why: str
    remedy: WayOut | None = None  # None: it comes by itself
    is_missing: bool = False


def status_of(findings: tuple[Finding, ...]) -> int:
    if any(finding.needs_action for finding in findings):
        return ACTION
    return MISSING if any(finding.is_missing for finding in findings) else HEALTHY


def judge_control(facts: Facts) -> tuple[Finding, ...]:
    """Without an active controller nobody is fenced, elected or let in, and what the metadata says grows old."""
    if facts.has_controller:
        return ()
    why = "no broker reaches an active controller: nothing is decided, and what brokers know of each other may be old"
    start = WayOut("start the controllers that are down", "none", "strandline node --config FILE_OF_THE_NODE")
    impaired = WayOut(
        "if all run, find a voter that lost metadata: it grants no vote until it has copied what is committed",
        "none",
        "grep 'this voter' LOG_OF_EACH_CONTROLLER",
    )
    waits_for = "a majority of the controllers to be there, and to have their metadata"
    return (Finding("without a controller", (why,), waits_for, True, ways=(start, impaired)),)


def judge_led(facts: Facts) -> tuple[Finding, ...]:
    """For a partition that has a leader. Nothing: it is healthy."""
    state = facts.state
    found: list[Finding] = []
    if state.leader in state.offline:
        why = f"broker {state.leader}, its leader, is not online, and the controller has not elected another yet"
        found.append(Finding("its leader is offline", (why,), "an election"))
    out = [out_of_sync(node, facts) for node in state.replicas if node not in state.isr and node not in state.adding]
    if state.is_under_min_isr:
        found.append(under_min_isr(facts, out))
    elif out:
        found.append(of_replicas(f"{numbers(row.node for row in out)} not in sync", (), out))
    if state.adding or state.removing:
        found.append(reassignment(facts))
    if state.is_recovering and set(state.replicas) - set(state.isr):  # else nobody is left who could be unlike it
        why = f"broker {state.leader} was elected uncleanly; the other replicas copy its log"
        found.append(Finding("it recovers from an unclean election", (why,), "its leader"))
    return tuple(found)


def judge_withdrawn(facts: Facts) -> tuple[Finding, ...]:
    """Replicas that are out of ISR and ELR since they lost records, as their brokers say. They copy from who leads, and
    have everything when they are in sync again."""
    state = facts.state
    lost = [one for one in facts.ledger.withdrawn if one.replica in state.replicas]
    return tuple(withdrawn(facts, one) for one in lost if one.replica not in state.isr + state.elr)


def withdrawn(facts: Facts, loss: Loss) -> Finding:
    node, leader = loss.replica, facts.state.leader
    waits_for = f"replica {node} to copy from broker {leader} what it lacks" if leader >= 0 else "a leader to copy from"
    look = WayOut(
        f"check the disk of broker {node} before it loses more: what changed or damaged its files",
        "none",
        f"strandline log-dirs describe --broker {node}{facts.options}",
    )
    return Finding(f"replica {node} was withdrawn", (withdrawal_words(loss),), waits_for, ways=(look,))


def judge_damage(facts: Facts) -> tuple[Finding, ...]:
    """What has rotted on a disk, and is not repaired yet. Others that have it are asked until one gives it."""
    rows = [row for row in facts.reports if isinstance(row, ReplicaLog) and row.damaged is not None]
    return tuple(damage(facts, row) for row in rows)


def damage(facts: Facts, row: ReplicaLog) -> Finding:
    assert row.damaged is not None
    start, end = row.damaged
    what = f"offsets {start} to {end - 1} are damaged on the disk of broker {row.replica}"
    why = "reads of them there get CORRUPT_MESSAGE"
    others = [node for node in facts.state.replicas if node != row.replica]
    if not others:
        return Finding(what, (why, "there is no other replica: they are lost"), needs_action=True)
    brokers = f"broker{'s' if len(others) > 1 else ''} {numbers(others)}"
    return Finding(what, (why,), f"records of {brokers} to repair them with")


def under_min_isr(facts: Facts, out: list[OutOfSync]) -> Finding:
    state = facts.state
    why = (
        f"in sync: {numbers(state.isr) or 'nobody'}; min.insync.replicas is {state.min_isr}",
        "acks=all is rejected (NOT_ENOUGH_REPLICAS), and consumers do not see new records",
    )
    finding = of_replicas("under min ISR", why, out)
    if not finding.needs_action:
        return finding
    config = f"--entity-type topics --entity-name {state.at.topic} --add-config min.insync.replicas={len(state.isr)}"
    lower = WayOut(
        f"lower min.insync.replicas to {len(state.isr)}",
        "none now; but records acknowledged from then on have fewer copies, and only in-sync replicas stay eligible",
        f"strandline configs alter {config}{facts.options}",
    )
    return Finding(finding.what, finding.why, finding.waits_for, True, finding.is_missing, (*finding.ways, lower))


def of_replicas(what: str, why: tuple[str, ...], out: list[OutOfSync]) -> Finding:
    return Finding(
        what,
        (*why, *(row.why for row in out)),
        f"replica{'' if len(out) == 1 else 's'} {numbers(row.node for row in out)} to be in sync" if out else "",
        any(row.remedy is not None for row in out),
        any(row.is_missing for row in out),
        tuple(row.remedy for row in out if row.remedy is not None),
    )


def reassignment(facts: Facts) -> Finding:
    state = facts.state
    moves = [
        f"{word} {numbers(nodes)}" for word, nodes in (("adds", state.adding), ("removes", state.removing)) if nodes
    ]
    out = [out_of_sync(node, facts) for node in state.adding if node not in state.isr]
    finding = of_replicas(f"it is being reassigned: {', '.join(moves)}", (), out)
    ways = finding.ways
    if finding.needs_action:
        text = f'{{"partitions": [{{"topic": "{state.at.topic}", "partition": {state.at.partition}}}]}}'
        cancel = WayOut(
            "cancel the move: it keeps the replicas that it had",
            "none",
            f"echo '{text}' > cancel.json && strandline reassignments cancel cancel.json{facts.options}",
        )
        ways = (*ways, cancel)
    waits = facts.waits_for or finding.waits_for
    return Finding(finding.what, finding.why, waits, finding.needs_action, finding.is_missing, ways)


# --- one replica


def out_of_sync(node: int, facts: Facts) -> OutOfSync:
    """Why is it not in sync, and what brings it back?"""
    absent = absence(node, facts)
    if absent is not None:
        return absent
    report = report_of(node, facts)
    if isinstance(report, Unasked):
        return OutOfSync(node, f"broker {node} should be there, but {report.why}", is_missing=True)
    lag = f"replica {lacks(facts.behind, node)}"
    if report is None:
        return OutOfSync(node, lag)
    if node in facts.moved:
        return OutOfSync(node, f"{lag}, and is catching up")
    leader = report_of(facts.state.leader, facts)
    if isinstance(leader, ReplicaLog) and report.rank == leader.rank:
        late = f"if that lasts, broker {facts.state.leader} does not reach the controller"
        return OutOfSync(node, f"replica {node} has all that the leader has, and is about to join the ISR; {late}")
    config = f"--entity-type brokers --entity-name {node} --all{facts.options}"
    look = WayOut(
        f"find out why replica {node} does not fetch: see its node's log, and throttles",
        "none",
        f"strandline configs describe {config} | grep throttled",
    )
    return OutOfSync(node, f"{lag}, and has not moved for {WATCHED_S} s: it is stuck, or slow", look)


def absence(node: int, facts: Facts) -> OutOfSync | None:
    """Why can this replica not lead, nor come into the ISR? None: it is there."""
    broker, report = facts.brokers.get(node), report_of(node, facts)
    if broker is None:
        return OutOfSync(node, f"broker {node} is not registered", start(node, facts))
    if node not in facts.state.offline:
        return None
    if isinstance(report, ReplicaLog):
        return OutOfSync(node, *runs_fenced(node, broker, facts))
    if report is None:
        return OutOfSync(node, f"broker {node} is offline", start(node, facts))
    if report.why.startswith("refuses"):
        look = WayOut(
            f"repair the log directory of replica {node}, and restart broker {node}",
            "none, if its files are whole",
            f"strandline log-dirs describe --broker {node}{facts.options}",
        )
        return OutOfSync(node, f"broker {node} {report.why}", look)
    return OutOfSync(node, f"broker {node} {report.why}", restart(node) if report.hangs else start(node, facts))


def runs_fenced(node: int, broker: BrokerAt, facts: Facts) -> tuple[str, WayOut]:
    state = "is fenced: it does not reach the controller" if broker.is_fenced else "has an offline log directory"
    look = WayOut(
        f"find out why broker {node} {state.partition(':')[0]}: see its node's log",
        "none",
        f"strandline log-dirs describe --broker {node}{facts.options}",
    )
    return f"broker {node} runs, but {state}", look


def start(node: int, facts: Facts) -> WayOut:
    broker = facts.brokers.get(node)
    where = f" (it was at {broker.host}:{broker.port})" if broker else ""
    return WayOut(f"start broker {node}{where}", "none", f"strandline node --config FILE_OF_NODE_{node}")


def restart(node: int) -> WayOut:
    what = f"find out why broker {node} hangs; kill and restart it"
    return WayOut(what, "none", f"strandline node --config FILE_OF_NODE_{node}")


def report_of(node: int, facts: Facts) -> LogReport | None:
    return next((row for row in facts.reports if row.replica == node), None)


def lacks(behind: dict[int, Behind] | str, node: int) -> str:
    if isinstance(behind, str):
        return f"{node} is behind by an unknown number" + (f" ({behind})" if behind else "")
    row = behind.get(node)
    if row is None:
        return f"{node} is behind by an unknown number"
    return words(row).replace(" by ", " is behind by ", 1)


def way_json(way: WayOut) -> dict[str, Any]:
    return {"what": way.what, "costs": way.costs, "command": way.command}


def as_json(finding: Finding) -> dict[str, Any]:
    return {
        "what": finding.what,
        "why": list(finding.why),
        "waits_for": finding.waits_for,
        "needs_action": finding.needs_action,
        "is_missing_facts": finding.is_missing,
        "ways": [way_json(way) for way in finding.ways],
    }
