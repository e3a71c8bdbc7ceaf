"""Which of this broker's log directories are cordoned: they keep what is in them, and get no new replicas (KIP-1066).

The broker reports them to the controller, which places no replicas where all directories are cordoned. A name in the
name that is not a log directory of this broker has no effect.
"""

from strandline.base.ids import ZERO_UUID, Uuid
from strandline.metadata.configs.dynamic_configs import dynamic_value
from strandline.metadata.configs.node_configs import ALL_DIRECTORIES
from strandline.replica.config import LogDir
from strandline.replica.hosting.host import Host

CORDONED = "cordoned.log.dirs"


def cordoned(host: Host) -> list[LogDir]:
    value = dynamic_value(host.image.configs, str(host.me), CORDONED)
    if value is None:
        value = host.static.get(CORDONED, ())
    assert isinstance(value, tuple)
    if not value:
        return []
    known = [*host.directories.live, *host.directories.offline.values()]
    named = {path.rstrip("/") or "/" for path in value}
    return [log_dir for log_dir in known if value == (ALL_DIRECTORIES,) or log_dir.path in named]


def cordoned_ids(host: Host) -> tuple[Uuid, ...]:
    """Of an offline directory the id may not be known."""
    return tuple(log_dir.directory_id for log_dir in cordoned(host) if log_dir.directory_id != ZERO_UUID)
