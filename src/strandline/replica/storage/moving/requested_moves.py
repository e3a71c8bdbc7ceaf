"""Which move of a replica to another log directory was asked for last: a small file beside its current log.

A directory that was offline may come back with the future log of a move that has ended since: one that is not
asked for is deleted.
"""

from strandline.base.ids import Uuid, parse_uuid, uuid_text
from strandline.base.ports import Disk, DiskError
from strandline.replica.config import LogDir
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted

FILE = "future-directory"  # the id of the directory that the replica is to go to


def request_move(host: Host, disk: Disk, hosted: Hosted, log_dir: LogDir | None) -> bool:
    """Note where the replica is to go, None: nowhere. False: its directory has failed."""
    assert not hosted.gone, hosted.name
    path = f"{hosted.log.directory}/{FILE}"
    try:
        if log_dir is not None:
            disk.write_file(path, uuid_text(log_dir.directory_id).encode())
        elif disk.exists(path):
            disk.remove(path)
        else:
            return True
    except DiskError as error:
        host.fail(hosted.directory, error)
        return False
    hosted.log.unsynced_others.add(path, hosted.log.directory)
    return True


def requested_move(disk: Disk, hosted: Hosted) -> Uuid | None:
    content = disk.read_file(f"{hosted.log.directory}/{FILE}")
    try:
        return None if content is None else parse_uuid(content.decode("ascii", "replace"))
    except ValueError:
        return None
