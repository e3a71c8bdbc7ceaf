"""The assignors that a group can choose by name, as in `group.consumer.assignors`."""

from strandline.group.assignors.range_ import assign_ranges
from strandline.group.assignors.spec import Assignor
from strandline.group.assignors.uniform import assign_uniformly

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
