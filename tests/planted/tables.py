"""All planted bugs, by name."""

from tests.planted.planted import Planted, table
from tests.planted.rows.compacting import COMPACTING
from tests.planted.rows.consumers.consuming import CONSUMING
from tests.planted.rows.consumers.migrating import MIGRATING
from tests.planted.rows.consumers.rebalancing import PROMISED, STABLE
from tests.planted.rows.controlling import CONTROLLING
from tests.planted.rows.coordinating import COORDINATING
from tests.planted.rows.directories import DIRECTORIES
from tests.planted.rows.eligible import ELIGIBLE
from tests.planted.rows.last_replicas import LAST_REPLICAS
from tests.planted.rows.metadata_quorum import METADATA_QUORUM
from tests.planted.rows.permitting import PERMITTING
from tests.planted.rows.replication import REPLICATION
from tests.planted.rows.storing import STORING
from tests.planted.rows.strangers import STRANGERS
from tests.planted.rows.transactions import TRANSACTIONS
from tests.planted.rows.transactions_in_logs import TRANSACTIONS_IN_LOGS
from tests.planted.rows.transactions_of_groups import TRANSACTIONS_OF_GROUPS

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
    *PERMITTING.values(),
    *TRANSACTIONS.values(),
    *COORDINATING.values(),
    *TRANSACTIONS_IN_LOGS.values(),
    *TRANSACTIONS_OF_GROUPS.values(),
    *PROMISED.values(),
    *STABLE.values(),
    *MIGRATING.values(),
)
