"""All mutants, by name."""

from tests.mutants.mutant import Mutant, table
from tests.mutants.tables.broker import BROKER
from tests.mutants.tables.controller.controller import CONTROLLER
from tests.mutants.tables.controller.directories import DIRECTORIES
from tests.mutants.tables.controller.moves import MOVES
from tests.mutants.tables.controller.partitions import PARTITIONS
from tests.mutants.tables.faces import FACES
from tests.mutants.tables.group import GROUP
from tests.mutants.tables.hostile import HOSTILE
from tests.mutants.tables.limits import LIMITS
from tests.mutants.tables.log.log import LOG
from tests.mutants.tables.log.log_parts import LOG_PARTS
from tests.mutants.tables.log.producers import PRODUCERS
from tests.mutants.tables.log.transactions import TRANSACTIONS
from tests.mutants.tables.metadata import METADATA
from tests.mutants.tables.planted import PLANTED
from tests.mutants.tables.quorum import QUORUM
from tests.mutants.tables.replica.copying import COPYING
from tests.mutants.tables.replica.followers import FOLLOWERS
from tests.mutants.tables.replica.leaders import LEADERS
from tests.mutants.tables.replica.returned import RETURNED
from tests.mutants.tables.replica.roles import ROLES
from tests.mutants.tables.replica.serving import SERVING
from tests.mutants.tables.replica.stops import STOPS
from tests.mutants.tables.replica.storage import STORAGE
from tests.mutants.tables.replica.wholeness import WHOLENESS
from tests.mutants.tables.security.acls import ACLS
from tests.mutants.tables.security.authorizing import AUTHORIZING
from tests.mutants.tables.security.quotas import QUOTAS
from tests.mutants.tables.security.sasl import SASL
from tests.mutants.tables.security.secured import SECURED
from tests.mutants.tables.security.tls import TLS
from tests.mutants.tables.security.users import USERS
from tests.mutants.tables.txn.kafkas_bugs import KAFKAS_BUGS
from tests.mutants.tables.txn.kip_defences import KIP_DEFENCES
from tests.mutants.tables.txn.kip_transactions import KIP_TRANSACTIONS
from tests.mutants.tables.txn.transaction_commands import TRANSACTION_COMMANDS
from tests.mutants.tables.txn.transactions_served import TRANSACTIONS_SERVED
from tests.mutants.tables.txn.txn_decisions import DECISIONS
from tests.mutants.tables.txn.txn_requests import REQUESTS
from tests.mutants.tables.wire import WIRE

MUTANTS: dict[str, Mutant] = table(
    *ACLS.values(),
    *AUTHORIZING.values(),
    *BROKER.values(),
    *CONTROLLER.values(),
    *COPYING.values(),
    *DIRECTORIES.values(),
    *FACES.values(),
    *GROUP.values(),
    *HOSTILE.values(),
    *KIP_TRANSACTIONS.values(),
    *KIP_DEFENCES.values(),
    *KAFKAS_BUGS.values(),
    *LEADERS.values(),
    *LIMITS.values(),
    *LOG.values(),
    *LOG_PARTS.values(),
    *METADATA.values(),
    *MOVES.values(),
    *PARTITIONS.values(),
    *PLANTED.values(),
    *PRODUCERS.values(),
    *QUORUM.values(),
    *QUOTAS.values(),
    *FOLLOWERS.values(),
    *ROLES.values(),
    *SERVING.values(),
    *STORAGE.values(),
    *RETURNED.values(),
    *STOPS.values(),
    *SASL.values(),
    *SECURED.values(),
    *TLS.values(),
    *TRANSACTION_COMMANDS.values(),
    *TRANSACTIONS.values(),
    *DECISIONS.values(),
    *REQUESTS.values(),
    *TRANSACTIONS_SERVED.values(),
    *USERS.values(),
    *WHOLENESS.values(),
    *WIRE.values(),
)
