"""All mutants, by name."""

from tests.mutants.mutant import Mutant, table
from tests.mutants.tables.broker import BROKER
from tests.mutants.tables.controller import CONTROLLER
from tests.mutants.tables.copying import COPYING
from tests.mutants.tables.directories import DIRECTORIES
from tests.mutants.tables.faces import FACES
from tests.mutants.tables.group import GROUP
from tests.mutants.tables.leaders import LEADERS
from tests.mutants.tables.log import LOG
from tests.mutants.tables.log_parts import LOG_PARTS
from tests.mutants.tables.metadata import METADATA
from tests.mutants.tables.moves import MOVES
from tests.mutants.tables.partitions import PARTITIONS
from tests.mutants.tables.planted import PLANTED
from tests.mutants.tables.producers import PRODUCERS
from tests.mutants.tables.quorum import QUORUM
from tests.mutants.tables.replica import REPLICA
from tests.mutants.tables.returned import RETURNED
from tests.mutants.tables.stops import STOPS
from tests.mutants.tables.transaction_commands import TRANSACTION_COMMANDS
from tests.mutants.tables.transactions import TRANSACTIONS
from tests.mutants.tables.transactions_served import TRANSACTIONS_SERVED
from tests.mutants.tables.txn_decisions import DECISIONS
from tests.mutants.tables.txn_requests import REQUESTS
from tests.mutants.tables.wholeness import WHOLENESS
from tests.mutants.tables.wire import WIRE

MUTANTS: dict[str, Mutant] = table(
    *BROKER.values(),
    *CONTROLLER.values(),
    *COPYING.values(),
    *DIRECTORIES.values(),
    *FACES.values(),
    *GROUP.values(),
    *LEADERS.values(),
    *LOG.values(),
    *LOG_PARTS.values(),
    *METADATA.values(),
    *MOVES.values(),
    *PARTITIONS.values(),
    *PLANTED.values(),
    *PRODUCERS.values(),
    *QUORUM.values(),
    *REPLICA.values(),
    *RETURNED.values(),
    *STOPS.values(),
    *TRANSACTION_COMMANDS.values(),
    *TRANSACTIONS.values(),
    *DECISIONS.values(),
    *REQUESTS.values(),
    *TRANSACTIONS_SERVED.values(),
    *WHOLENESS.values(),
    *WIRE.values(),
)
