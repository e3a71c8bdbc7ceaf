"""A run as a space-time diagram: machines against time, messages as arrows between them."""

from strandline.sim.diagram.page import write_page
from strandline.sim.diagram.svg import svg

__all__ = ["svg", "write_page"]
