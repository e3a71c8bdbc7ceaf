"""All mutants, by name."""

from tests.mutants.mutant import Mutant, table
from tests.mutants.tables.group import GROUP
from tests.mutants.tables.log import LOG
from tests.mutants.tables.metadata import METADATA
from tests.mutants.tables.quorum import QUORUM
from tests.mutants.tables.replica import REPLICA

MUTANTS: dict[str, Mutant] = table(
    *LOG.values(),
    *METADATA.values(),
    *QUORUM.values(),
    *REPLICA.values(),
    *GROUP.values(),
)
