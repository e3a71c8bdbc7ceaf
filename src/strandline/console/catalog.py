"""The list of views, in the order of the navigation."""

from strandline.console.view import View
from strandline.console.views.cluster import CLUSTER

VIEWS: tuple[View, ...] = (CLUSTER,)
