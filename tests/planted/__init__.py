"""Planted bugs, and how to plant one: `install(name)`, before anything else is imported."""

from tests.planted.guards import NotPlanted
from tests.planted.hook import install
from tests.planted.planted import Change, Planted
from tests.planted.tables import PLANTED

__all__ = ["PLANTED", "Change", "NotPlanted", "Planted", "install"]
