"""What operators do meanwhile."""

from random import Random

from strandline.sim.faults.turmoil import Turmoil


def recreate(turmoil: Turmoil, rng: Random) -> None:
    if "brief" in turmoil.world.options.workloads:
        turmoil.admin.wish(lambda: turmoil.admin.delete("brief"), lambda: turmoil.admin.create("brief"))


def configure(turmoil: Turmoil, rng: Random) -> None:
    value = str(rng.choice((1, 2, 2, 3)))
    turmoil.admin.wish(lambda: turmoil.admin.configure("orders", "min.insync.replicas", value))


def trim(turmoil: Turmoil, rng: Random) -> None:
    offset = rng.choice((-1, -1, rng.randrange(0, 300), 1 << 40))  # to the high watermark, somewhere, and too far
    turmoil.admin.wish(lambda: turmoil.admin.trim("loose", offset))


def add_partitions(turmoil: Turmoil, rng: Random) -> None:
    count = rng.choice((4, 5))
    turmoil.admin.wish(lambda: turmoil.admin.add_partitions("orders", count))
