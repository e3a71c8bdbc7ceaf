"""Which of a node's files only its user may read: the metadata log with its snapshots, and what a cluster begins with.

They have salted passwords of SCRAM, and passwords and keys of dynamic configurations. Other files get their mode from
the umask, as Kafka's do. What was written before with another mode is closed to others when the node starts.
"""

import os
import stat
from contextlib import suppress

from strandline.broker.bootstrap_file import NAME as BOOTSTRAP
from strandline.broker.faults.quarantine import FILE as QUARANTINED
from strandline.quorum.storage.metadata_log import DIRECTORY

OTHERS = stat.S_IRWXG | stat.S_IRWXO
FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
NAMES = (BOOTSTRAP, QUARANTINED)


def is_private(path: str) -> bool:
    name = os.path.basename(path).removesuffix(".tmp")
    return name in NAMES or DIRECTORY in path.split("/")


def create_private(path: str, flags: int) -> int:
    """An `opener`. What a crash has left there gets the same mode."""
    fd = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
    if os.fstat(fd).st_mode & OTHERS:
        with suppress(OSError):  # another user's
            os.fchmod(fd, FILE_MODE)
    return fd


def close_to_others(root: str) -> None:
    """`root`: the directory of the metadata log."""
    for name, mode in ((DIRECTORY, DIRECTORY_MODE), *((name, FILE_MODE) for name in NAMES)):
        path = os.path.join(root, name)
        with suppress(OSError):  # it is not there
            if os.stat(path).st_mode & OTHERS:
                os.chmod(path, mode)
