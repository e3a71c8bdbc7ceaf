"""The JSON Schema of what each command prints with --json.

A distribution that adds commands brings a table of its own: an entry point names a module with PRINTED and LINES.
"""

from functools import cache
from importlib import import_module
from typing import Any

import msgspec

HERE = "strandline.cli.printed"
PLACES, LEDGER, GROUPS, TRANSACTIONS, SETTINGS, LAB = (
    f"{HERE}.{name}" for name in ("places", "ledger", "groups", "transactions", "settings", "lab")
)

# By command: MODULE:TYPE of the document; [TYPE] is an array of it, and several are alternatives.
PRINTED = {
    "topics list": ("[str]",),
    "topics describe": (f"[{PLACES}:PartitionRow]",),
    "acls list": (f"[{SETTINGS}:AclRow]",),
    "acls add": (f"[{SETTINGS}:AclChanged]",),
    "acls remove": (f"[{SETTINGS}:AclChanged]",),
    "configs describe": (f"[{SETTINGS}:ConfigRow]", f"[{SETTINGS}:EntityConfigs]"),
    "users list": (f"[{SETTINGS}:UserRow]",),
    "features describe": (f"[{SETTINGS}:FeatureRow]",),
    "reassignments list": (f"[{PLACES}:Move]",),
    "log-dirs describe": (f"[{PLACES}:LogDir]",),
    "metrics": (f"[{SETTINGS}:NodeMetrics]",),
    "explain": (f"[{PLACES}:Explained]", f"[{GROUPS}:GroupExplained]"),
    "leader-election": (f"{LEDGER}:Election",),
    "groups list": (f"[{GROUPS}:GroupListed]",),
    "groups describe": (f"[{GROUPS}:GroupRow]",),
    "groups members": (f"[{GROUPS}:MemberRow]",),
    "groups lag": (f"[{GROUPS}:PositionRow]",),
    "groups reset-offsets": (f"[{GROUPS}:ResetRow]",),
    "groups delete-offsets": (f"[{GROUPS}:OffsetDeleted]",),
    "groups delete": (f"[{GROUPS}:GroupDeleted]",),
    "losses": (f"{LEDGER}:Losses",),
    "transactions list": (f"[{TRANSACTIONS}:TransactionListed]",),
    "transactions describe": (f"[{TRANSACTIONS}:TransactionRow]",),
    "transactions producers": (f"[{TRANSACTIONS}:ProducerRow]",),
    "transactions abort": (f"[{TRANSACTIONS}:ProducerRow]",),
    "transactions find-hanging": (f"[{TRANSACTIONS}:HangingRow]",),
    "console": (f"{SETTINGS}:ConsoleStarted",),
    "consume": (f"{HERE}.records:Record",),
    "bench": (f"{LAB}:Benched",),
    "bench cold": (f"{LAB}:BenchedCold",),
    "bench connections": (f"{LAB}:BenchedConnections",),
    "bench failover": ("strandline.bench.interruption:Interrupted",),
    "bench requests": (f"{LAB}:BenchedRequests",),
    "bench start": ("strandline.bench.interruption:Started",),
    "bench transactions": (f"{LAB}:BenchedTransactions",),
    "bench scale": (f"{LAB}:BenchedScale",),
    "demo": (f"{LAB}:LeaderKill",),
    "demo last-replica": (f"{LAB}:LastReplica",),
    "demo exactly-once": (f"{LAB}:ExactlyOnce",),
    "sim": ("strandline.sim.runs.run:RunResult",),
    "model": (f"[{LAB}:ExploredPartition]",),
    "model transactions": (f"[{LAB}:ExploredTransactions]",),
}
LINES = ("consume", "sim")  # one document in each line
PLUGINS = "strandline.schemas"  # the entry points of other distributions


@cache
def tables() -> tuple[Any, ...]:
    """The modules with the tables of other distributions."""
    from importlib.metadata import entry_points  # an import of 20 ms

    return tuple(entry.load() for entry in entry_points(group=PLUGINS))


def printed() -> dict[str, tuple[str, ...]]:
    """PRINTED, with the commands of other distributions."""
    found = dict(PRINTED)
    for table in tables():
        assert found.keys().isdisjoint(table.PRINTED), "a command has one table"
        found |= table.PRINTED
    return found


def prints_lines(command: str) -> bool:
    """Whether each line is a document; else the whole output is one."""
    return any(command in lines for lines in (LINES, *(table.LINES for table in tables())))


def schema(command: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a document that this command prints. Raises KeyError for another command."""
    found = [msgspec.json.schema(type_of(text)) for text in printed()[command]]
    definitions: dict[str, Any] = {}
    for one in found:
        definitions |= one.pop("$defs", {})
    (document,) = found if len(found) == 1 else ({"anyOf": found},)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"strandline {command} --json"}
    return {**head, **document, **({"$defs": definitions} if definitions else {})}


def type_of(text: str) -> Any:
    if text.startswith("["):
        return list[type_of(text[1:-1])]  # type: ignore[misc]  # made while it runs
    module, colon, name = text.rpartition(":")
    return getattr(import_module(module), name) if colon else {"str": str}[name]
