"""Which seeds have groups of the consumer protocol, and what brokers must be configured with for them."""

from random import Random

from msgspec import structs

from strandline.sim.world.options import Options

REBALANCING = "rebalancing"
FIRST_GROUPED = 40_000_001  # seeds before it are those that planted bugs, plans and regressions are recorded with
SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "150",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "2500",
    "group.min.session.timeout.ms": "100",
    "group.initial.rebalance.delay.ms": "50",
    "offsets.retention.minutes": "10080",  # a clock that jumps must not end it: members believe that positions stay
}


def has_groups(seed: int) -> bool:
    return seed >= FIRST_GROUPED and Random(f"{seed} grouped").randrange(2) == 0


def with_groups(seed: int, options: Options) -> Options:
    """Beside the other workloads; in one run of three without most of these. Where requests come twice a commit may,
    too, and a group's position goes back."""
    others = options.workloads if Random(f"{seed} in groups").randrange(3) else options.workloads[:1]
    undisturbed = structs.replace(options, weather=structs.replace(options.weather, duplicated_permille=0))
    return structs.replace(undisturbed, workloads=(*others, REBALANCING), settings=options.settings | SETTINGS)
