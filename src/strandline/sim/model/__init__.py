"""The controller's partition state machine, explored exhaustively: its real planning, and the real `Image.apply`."""

from strandline.sim.model.exploration import explore
from strandline.sim.model.search import Exploration
from strandline.sim.model.setup import Setup, ladder

__all__ = ["Exploration", "Setup", "explore", "ladder"]
