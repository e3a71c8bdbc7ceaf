"""What must hold of log directories after every event.

- offline directories that a broker believes to have reported are offline in the committed metadata
- when faults have ended, the metadata says of each replica where it lies (T41)
- a node ends over an error of a disk only where it cannot go on: the metadata log's directory has failed, or the last
  one. Every other error has somebody who takes its directory offline
"""

from strandline.base.ports import DiskError
from strandline.base.time import NEVER
from strandline.broker.broker import Broker
from strandline.broker.node import Node
from strandline.metadata.image import Image, directory_of
from strandline.replica.hosting.hosted import Hosted
from strandline.sim.world.machine import Machine


def look_at_directories(machine: Machine, broker: Broker, committed: "Image") -> None:
    if broker.lifecycle.report_until != NEVER:
        return
    known = committed.brokers.get(machine.node_id)
    if known is None or known.epoch != broker.lifecycle.epoch:
        return
    believed = [directory for directory in broker.directories.offline_ids if directory in known.log_dirs]
    assert not believed, f"{machine.name} has told of offline directories, and the metadata has them online"


def may_end_over(machine: Machine, node: Node, error: DiskError) -> None:
    """The message of an error begins with its path."""
    if node.broker is None or is_below(machine.config.metadata_log_dir, error):
        return
    live = [log_dir.path for log_dir in node.broker.directories.live]
    assert len(live) == 1 and is_below(live[0], error), f"{machine.name} has {live}, and ends over {error}"


def is_below(directory: str, error: DiskError) -> bool:
    return str(error).startswith((f"{directory}/", f"{directory}:"))


def why_not_located(machine: Machine, hosted: Hosted, committed: "Image") -> str | None:
    partition = committed.partition(hosted.at)
    known = None if partition is None else directory_of(partition, machine.node_id)
    if known == hosted.directory.directory_id:
        return None
    return f"{hosted.name} of {machine.name} lies in {hosted.directory.path}, and the metadata has it elsewhere"
