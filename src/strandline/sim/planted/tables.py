"""All planted bugs, by name."""

from strandline.sim.planted.compacting import COMPACTING
from strandline.sim.planted.consuming import CONSUMING
from strandline.sim.planted.controlling import CONTROLLING
from strandline.sim.planted.directories import DIRECTORIES
from strandline.sim.planted.eligible import ELIGIBLE
from strandline.sim.planted.last_replicas import LAST_REPLICAS
from strandline.sim.planted.metadata_quorum import METADATA_QUORUM
from strandline.sim.planted.planted import Planted, table
from strandline.sim.planted.replication import REPLICATION
from strandline.sim.planted.storing import STORING
from strandline.sim.planted.strangers import STRANGERS

PLANTED: dict[str, Planted] = table(
    *REPLICATION.values(),
    *STORING.values(),
    *CONTROLLING.values(),
    *ELIGIBLE.values(),
    *LAST_REPLICAS.values(),
    *METADATA_QUORUM.values(),
    *DIRECTORIES.values(),
    *CONSUMING.values(),
    *COMPACTING.values(),
    *STRANGERS.values(),
)
