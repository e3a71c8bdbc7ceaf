"""The list of commands. Each is imported when it runs, so that it starts fast whatever the others need.

The list of `strandline --help` is made of the summaries here; `strandline COMMAND --help` shows the command's own text.
`node` is here for the list alone: `cli.main` handles it before this is imported.
"""

import sys
from importlib.metadata import entry_points

from cyclopts import App

from strandline.base import VERSION

ADMIN, GROUPS, RECORDS, NODES, LAB, SECURITY = (
    f"strandline.cli.{folder}" for folder in ("admin", "groups", "records", "nodes", "lab", "security")
)
COMMANDS = {
    "up": (f"{NODES}.up:up", "Run a cluster on this machine until Ctrl-C."),
    "node": (f"{NODES}.node:node", "Run one node until SIGTERM or Ctrl-C."),
    "format": (f"{NODES}.format:format_storage", "Prepare a node's log directories."),
    "random-uuid": (f"{NODES}.format:random_uuid", "Print a new cluster id."),
    "topics": (f"{ADMIN}.topics:app", "Create, list, describe and delete topics."),
    "acls": (f"{ADMIN}.acls:app", "List, add and remove ACLs: who may do what."),
    "configs": (f"{ADMIN}.configs:app", "Show and change configurations; quotas of clients."),
    "users": (f"{SECURITY}.users:app", "List, add and remove users that log in with SCRAM."),
    "features": (f"{ADMIN}.features:app", "Show the features of a cluster, and change their levels."),
    "reassignments": (f"{ADMIN}.reassignments:app", "Move partitions to other brokers; list and cancel moves."),
    "log-dirs": (f"{ADMIN}.log_dirs:app", "Show log directories, and move replicas between them."),
    "metrics": (f"{ADMIN}.metrics:metrics", "Show the main metrics of every node."),
    "explain": (f"{ADMIN}.explain:explain", "Say what is wrong with a partition or group, and what to do."),
    "leader-election": (f"{ADMIN}.leader_election:leader_election", "Elect leaders, after showing what that loses."),
    "groups": (f"{GROUPS}.app:app", "Show groups and their lag; reset and delete their offsets."),
    "losses": (f"{ADMIN}.losses:losses", "List records that were lost, or may have been."),
    "transactions": (f"{ADMIN}.transactions:app", "Show transactions; find those that hang, and abort them."),
    "produce": (f"{RECORDS}.produce:produce", "Write each line of the input as one record."),
    "consume": (f"{RECORDS}.consume:consume", "Print records, one a line, until Ctrl-C."),
    "bench": (f"{LAB}.bench:app", "Measure throughput, or what many partitions cost."),
    "demo": (f"{LAB}.demo:app", "Watch a cluster of real processes survive failures."),
    "sim": (f"{LAB}.sim:sim", "Run simulated clusters under faults, and check them."),
    "model": (f"{LAB}.model:app", "Explore elections and transactions exhaustively."),
}
PIPELINE = "Run jobs on Spark: ingest, audit, emit, lag and others."


def command(app: App, name: str, path: str, summary: str) -> None:
    """The summary is for lists. Given to a command that is asked for, it would take the place of the command's text."""
    app.command(path, name=name, help=None if name in sys.argv[1:3] else summary)


def plugins(app: App, group: str, summary: str) -> None:
    """Commands of other distributions, by their entry points. `pipeline` is always there, if only to say what is
    missing; `summary` is its own."""
    found = {"pipeline": "strandline.cli.missing:spark"}
    found |= {entry.name: entry.value for entry in entry_points(group=group)}
    for name, path in found.items():
        command(app, name, path, summary if name == "pipeline" else "")


app = App(name="strandline", version=VERSION, help="A replicated log that speaks Kafka's protocol.")
for name, (path, summary) in COMMANDS.items():
    command(app, name, path, summary)
if sys.argv[1:2] == [] or sys.argv[1] not in COMMANDS:  # finding what is installed takes a while
    plugins(app, "strandline.commands", PIPELINE)
