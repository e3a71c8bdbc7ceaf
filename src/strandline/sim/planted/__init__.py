"""Planted bugs, and how to plant one: `install(name)`, before anything else is imported."""

from strandline.sim.planted.hook import NotPlanted, install
from strandline.sim.planted.planted import Change, Planted
from strandline.sim.planted.tables import PLANTED

__all__ = ["PLANTED", "Change", "NotPlanted", "Planted", "install"]
