"""Planted bugs, and how to plant one: `install(name)`, before anything else is imported."""

from strandline.sim.planted.hook import NotPlanted, install
from strandline.sim.planted.planted import Planted
from strandline.sim.planted.tables import PLANTED

__all__ = ["PLANTED", "NotPlanted", "Planted", "install"]
