"""The list of views, in the order of the navigation."""

from strandline.console.view import View
from strandline.console.views.cluster import CLUSTER
from strandline.console.views.losses import LOSSES
from strandline.console.views.partitions import PARTITIONS

VIEWS: tuple[View, ...] = (CLUSTER, PARTITIONS, LOSSES)
