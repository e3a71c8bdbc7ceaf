"""What the laws of one world look at: its machines, what is committed, and what the faults have taken."""

from strandline.sim.damage import Damage
from strandline.sim.world.cluster import Cluster


class Subject(Cluster):
    damage: Damage
