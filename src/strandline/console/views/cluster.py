"""The cluster: its nodes, its quorum, who leads what; and its health, as a sentence and the list behind it."""

from collections import Counter
from collections.abc import Iterable

from strandline.base.value import Value
from strandline.client.admin.loss_acknowledgement import acknowledgement
from strandline.client.admin.loss_ledger import entries
from strandline.client.admin.partitions import PartitionState
from strandline.console.facts import Facts
from strandline.console.table import Json, Rows
from strandline.console.view import Channel, View

GOOD, WARNING, BAD = "good", "warning", "bad"
LISTED_MAX = 5  # partitions that one line of the health names


class Trouble(Value, frozen=True):
    level: str
    what: str  # a sentence
    path: str = ""  # the view that has more


def node_rows(facts: Facts) -> Rows:
    """By node id."""
    brokers = {row.broker_id: row for row in facts.cluster.brokers} if facts.cluster else {}
    members = {member.node: member for member in facts.quorum.members} if facts.quorum else {}
    leads = Counter(state.leader for state in facts.partitions)
    hosts = Counter(node for state in facts.partitions for node in state.replicas)
    in_sync = Counter(node for state in facts.partitions for node in state.isr)
    newest = max((member.end_offset for member in members.values()), default=0)
    rows: dict[str, Json] = {}
    for node in sorted({*brokers, *(node for node, member in members.items() if member.is_voter)}):
        broker, member = brokers.get(node), members.get(node)
        is_voter = member is not None and member.is_voter
        rows[str(node)] = {
            "node": node,
            "roles": [*(["broker"] if broker else []), *(["controller"] if is_voter else [])],
            "is_leader": facts.quorum is not None and facts.quorum.leader == node,
            "is_voter": is_voter,
            "state": "" if broker is None else state_of(broker.is_fenced, node in silent(facts)),
            "address": "" if broker is None else f"{broker.host}:{broker.port}",
            "rack": broker.rack if broker else None,
            "leads": leads[node],
            "hosts": hosts[node],
            "in_sync": in_sync[node],
            "metadata_offset": member.end_offset if member else -1,
            "metadata_behind": newest - member.end_offset if member and member.end_offset >= 0 else -1,
        }
    return rows


def state_of(is_fenced: bool, is_silent: bool) -> str:
    if is_fenced:
        return "fenced"
    return "no answer" if is_silent else "running"


def summary_rows(facts: Facts) -> Rows:
    quorum = facts.quorum
    found = troubles(facts)
    return {
        "cluster": {
            "id": facts.cluster.cluster_id if facts.cluster else "",
            "topics": len({state.at.topic for state in facts.partitions}),
            "partitions": len(facts.partitions),
            "racks": len({row.rack for row in facts.cluster.brokers if row.rack}) if facts.cluster else 0,
            "quorum": None if quorum is None else {"leader": quorum.leader, "epoch": quorum.epoch},
        },
        "health": {
            "level": level_of(facts, found),
            "sentence": sentence(facts, found),
            "troubles": [{"level": one.level, "what": one.what, "path": one.path} for one in found],
        },
    }


# --- health


def troubles(facts: Facts) -> list[Trouble]:
    """The worst first."""
    found = [*of_nodes(facts), *of_partitions(facts.partitions), *of_ledger(facts)]
    return sorted(found, key=lambda one: (BAD, WARNING).index(one.level))


def of_nodes(facts: Facts) -> Iterable[Trouble]:
    if facts.quorum is not None and facts.quorum.leader < 0:
        yield Trouble(BAD, "The metadata quorum has no leader: nobody elects leaders or changes topics.")
    brokers = facts.cluster.brokers if facts.cluster else ()
    fenced = [row.broker_id for row in brokers if row.is_fenced]
    if fenced:
        verb, them = ("is", "it") if len(fenced) == 1 else ("are", "them")
        yield Trouble(BAD, f"{named('Broker', fenced)} {verb} fenced: the controller does not hear from {them}.")
    for node, why in silent(facts).items():
        if node not in fenced:
            yield Trouble(BAD, f"Broker {node} {why}.")


def silent(facts: Facts) -> dict[int, str]:
    """Brokers that the console itself could not ask, and why."""
    return {} if facts.ledger is None else facts.ledger.silent


def of_partitions(states: Iterable[PartitionState]) -> Iterable[Trouble]:
    states = list(states)
    unavailable = [state for state in states if state.is_unavailable]
    under = [state for state in states if not state.is_unavailable and state.is_under_min_isr]
    recovering = [state for state in states if state.is_recovering and not state.is_unavailable]
    short = [
        state
        for state in states
        if not state.is_unavailable and not state.is_under_min_isr and set(state.replicas) - set(state.isr)
    ]
    if unavailable:
        yield Trouble(BAD, f"{counted(unavailable)} no leader{listed(unavailable)}.", "partitions?show=leaderless")
    if under:
        what = f"{counted(under)} fewer replicas in sync than min.insync.replicas{listed(under)}."
        yield Trouble(BAD, what, "partitions?show=under-min-isr")
    if short:
        yield Trouble(WARNING, f"{counted(short)} replicas out of sync{listed(short)}.", "partitions?show=out-of-sync")
    if recovering:
        what = f"{counted(recovering)} a leader that was elected uncleanly{listed(recovering)}."
        yield Trouble(WARNING, what, "partitions?show=recovering")


def of_ledger(facts: Facts) -> Iterable[Trouble]:
    if facts.ledger is None:
        return
    ledger = facts.ledger
    unseen = [entry for entry in entries(ledger.losses) if acknowledgement(entry, ledger.acknowledged) is None]
    if unseen:
        many = "1 entry" if len(unseen) == 1 else f"{len(unseen)} entries"
        yield Trouble(WARNING, f"The loss ledger has {many} that nobody has acknowledged.", "losses")


def level_of(facts: Facts, found: list[Trouble]) -> str:
    """Empty: unknown."""
    if facts.cluster is None:
        return ""
    return found[0].level if found else GOOD


def sentence(facts: Facts, found: list[Trouble]) -> str:
    if facts.cluster is None:
        return "The console has not reached the cluster yet."
    if not found:
        running = len(facts.cluster.brokers)
        brokers = "the broker runs" if running == 1 else f"all {running} brokers run"
        return f"Healthy: {brokers}, and all {len(facts.partitions)} partitions have all their replicas in sync."
    if len(found) == 1:
        return found[0].what
    rest = "1 more thing needs" if len(found) == 2 else f"{len(found) - 1} more things need"
    return f"{found[0].what} {rest} attention."


def counted(states: list[PartitionState]) -> str:
    return "1 partition has" if len(states) == 1 else f"{len(states)} partitions have"


def listed(states: list[PartitionState]) -> str:
    more = ", …" if len(states) > LISTED_MAX else ""
    return f" ({', '.join(str(state.at) for state in states[:LISTED_MAX])}{more})"


def named(what: str, nodes: list[int]) -> str:
    return f"{what}{'' if len(nodes) == 1 else 's'} {', '.join(map(str, nodes))}"


CLUSTER = View(
    "cluster",
    "Cluster",
    channels=(
        Channel("summary", ("cluster", "quorum", "partitions", "ledger"), summary_rows),
        Channel("nodes", ("cluster", "quorum", "partitions", "ledger"), node_rows),
    ),
)
