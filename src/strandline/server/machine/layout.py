"""A machine with many cores runs several nodes, its shards: a node is one loop, which one core does.

`strandline format --shards N` makes N properties files out of one. The shards of a machine have one `broker.rack`, so
no two replicas of a partition are on one machine as long as there are as many machines as replicas. Only the first
shard is a controller, so a machine has one vote in the quorum, as before.
"""

from collections.abc import Mapping
from pathlib import Path

from strandline.metadata.configs.node_configs import METRICS_LISTENER

PORTS_APART = 10  # one shard from the next, so that the ports of all listeners of a node have room
SHARDS_MAX = 64
RACK = "broker.rack"
FOLDER = ".d"  # instead of the suffix of the machine's properties file


class BadLayout(ValueError):
    """The machine's properties do not fit several nodes."""


def folder_of(config: Path) -> Path:
    return config.with_suffix(FOLDER)


def name_of(shard: int) -> str:
    return f"shard-{shard:02}.properties"


def shards_of(machine: Mapping[str, str], count: int) -> list[dict[str, str]]:
    """The properties of each shard; the first one's are the machine's, but for its directories. Raises BadLayout."""
    if not 1 <= count <= SHARDS_MAX:
        raise BadLayout(f"a machine has 1 to {SHARDS_MAX} shards, not {count}")
    base = machine.get("node.id", "")
    if not base.isdecimal():
        raise BadLayout(f"node.id is the first shard's id, a number, and not '{base}'")
    shards = [shard_of(machine, int(base), shard) for shard in range(count)]
    taken: dict[int, int] = {}
    for number, shard in enumerate(shards):
        for port in ports_of(shard):
            if port in taken:
                raise BadLayout(
                    f"shards {taken[port]} and {number} would both have port {port}: shards are {PORTS_APART} ports"
                    " apart, so a node's own ports must be closer together, or further apart"
                )
            taken[port] = number
    return shards


def shard_of(machine: Mapping[str, str], base: int, shard: int) -> dict[str, str]:
    assert shard >= 0
    found = dict(machine)
    found["node.id"] = str(base + shard)
    found.setdefault(RACK, f"machine-{base}")
    for key in ("log.dirs", "log.dir", "metadata.log.dir"):
        if key in machine:
            found[key] = ",".join(f"{path.strip()}/shard-{shard:02}" for path in machine[key].split(","))
    for key in ("listeners", "advertised.listeners", METRICS_LISTENER):
        if key in machine:
            found[key] = ",".join(moved(entry.strip(), shard) for entry in machine[key].split(","))
    if shard:
        found["process.roles"] = "broker"
        controllers = [name.strip().upper() for name in machine.get("controller.listener.names", "").split(",")]
        kept = [entry for entry in found.get("listeners", "").split(",") if listener_of(entry) not in controllers]
        found["listeners"] = ",".join(kept)
    return found


def listener_of(entry: str) -> str:
    return entry.partition("://")[0].upper()


def moved(entry: str, shard: int) -> str:
    """NAME://host:port, or host:port, with the shard's own port; a port 0 is any free one."""
    address, colon, port = entry.rpartition(":")
    if not (colon and port.isdecimal()):
        raise BadLayout(f"'{entry}' has no port")
    return entry if port == "0" else f"{address}:{int(port) + PORTS_APART * shard}"


def ports_of(shard: Mapping[str, str]) -> list[int]:
    entries = [*shard.get("listeners", "").split(","), shard.get(METRICS_LISTENER, "")]
    ports = [int(entry.rpartition(":")[2]) for entry in entries if entry]
    return [port for port in ports if port]


def text_of(properties: Mapping[str, str]) -> str:
    """Of a Java property file, in which a backslash escapes, and blanks before a value do not count."""
    return "".join(f"{key}={escaped(value)}\n" for key, value in properties.items())


def escaped(value: str) -> str:
    for letter, escape in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\f", "\\f")):
        value = value.replace(letter, escape)
    return f"\\{value}" if value.startswith(" ") else value
