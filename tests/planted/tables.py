"""All planted bugs, by name."""

from tests.planted.compacting import COMPACTING
from tests.planted.consuming import CONSUMING
from tests.planted.controlling import CONTROLLING
from tests.planted.coordinating import COORDINATING
from tests.planted.directories import DIRECTORIES
from tests.planted.eligible import ELIGIBLE
from tests.planted.last_replicas import LAST_REPLICAS
from tests.planted.metadata_quorum import METADATA_QUORUM
from tests.planted.planted import Planted, table
from tests.planted.replication import REPLICATION
from tests.planted.storing import STORING
from tests.planted.strangers import STRANGERS
from tests.planted.transactions import TRANSACTIONS
from tests.planted.transactions_in_logs import TRANSACTIONS_IN_LOGS
from tests.planted.transactions_of_groups import TRANSACTIONS_OF_GROUPS

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
    *TRANSACTIONS.values(),
    *COORDINATING.values(),
    *TRANSACTIONS_IN_LOGS.values(),
    *TRANSACTIONS_OF_GROUPS.values(),
)
