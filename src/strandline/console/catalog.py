"""The list of views, in the order of the navigation."""

from strandline.console.view import View
from strandline.console.views.cluster import CLUSTER
from strandline.console.views.groups import GROUPS
from strandline.console.views.losses import LOSSES
from strandline.console.views.metrics import METRICS
from strandline.console.views.partitions import PARTITIONS
from strandline.console.views.reassignments import REASSIGNMENTS
from strandline.console.views.reports import REPORTS
from strandline.console.views.topics import TOPICS
from strandline.console.views.transactions import TRANSACTIONS

VIEWS: tuple[View, ...] = (
    CLUSTER,
    PARTITIONS,
    LOSSES,
    TOPICS,
    GROUPS,
    REASSIGNMENTS,
    TRANSACTIONS,
    METRICS,
    REPORTS,
)
