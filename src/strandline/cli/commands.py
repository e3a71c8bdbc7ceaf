"""The list of commands, and the text of `strandline --help`, which is made of it.

The command-line library is not imported here: it is most of what the help would cost. `cli.app` gives the list to it.
`strandline COMMAND --help` shows the command's own text. `node` is in the list for the help alone: `cli.main` handles
it before anything else.
"""

from collections.abc import Iterator

ADMIN, GROUPS, RECORDS, NODES, LAB, SECURITY, SHELL = (
    f"strandline.cli.{folder}" for folder in ("admin", "groups", "records", "nodes", "lab", "security", "shell")
)
COMMANDS = {
    "up": (f"{NODES}.up:up", "Run a cluster on this machine until Ctrl-C."),
    "console": (f"{NODES}.console:console", "Show a cluster in the browser."),
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
    "schema": (f"{SHELL}.schema:print_schema", "Print the JSON Schema of what a command prints."),
    "completion": (f"{SHELL}.completion:completion", "Print a completion script for bash, zsh or fish."),
}
PLUGINS = "strandline.commands"  # the entry points of other distributions
PIPELINE = "Run jobs on Spark: ingest, audit, emit, lag and others."
HELP = "A replicated log that speaks Kafka's protocol."
HEADINGS = {
    "Run a cluster": (NODES,),
    "Administer a cluster": (ADMIN, GROUPS, SECURITY),
    "Write and read records": (RECORDS,),
    "Test and measure": (LAB,),
    "Use it in shells and scripts": (SHELL,),
}
Row = tuple[str, str]  # a name, and one sentence
OPTIONS: list[Row] = [
    ("--help, -h", "Show this text, or a command's: strandline COMMAND --help."),
    ("--version", "Show the version."),
]


def plugins(group: str) -> dict[str, str]:
    """The commands of other distributions by name, each as MODULE:OBJECT. `pipeline` is always there, if only to say
    what is missing."""
    from importlib.metadata import entry_points  # an import of 20 ms

    missing = {"pipeline": "strandline.cli.missing:spark"}
    return missing | {entry.name: entry.value for entry in entry_points(group=group)}


def help_text() -> str:
    sections = {title: list(rows(folders)) for title, folders in HEADINGS.items()}
    assert sum(map(len, sections.values())) == len(COMMANDS), "each command has one heading"
    sections["Other distributions"] = [(name, PIPELINE if name == "pipeline" else "") for name in plugins(PLUGINS)]
    sections["Options"] = OPTIONS
    return "\n".join(["Usage: strandline COMMAND", "", HELP, *lines(sections)])


def rows(folders: tuple[str, ...]) -> Iterator[Row]:
    for name, (path, summary) in COMMANDS.items():
        if path.startswith(tuple(f"{folder}." for folder in folders)):
            yield name, summary


def lines(sections: dict[str, list[Row]]) -> Iterator[str]:
    width = max(len(name) for found in sections.values() for name, _ in found)
    for title, found in sections.items():
        yield from ("", f"{title}:")
        yield from (f"  {name:{width}}  {summary}".rstrip() for name, summary in found)
