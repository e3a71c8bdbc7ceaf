"""Workloads of transactions, and what brokers must be configured with for them. Half of the later seeds have some."""

from random import Random

from msgspec import structs

from strandline.sim.world.options import Options

TRANSACTIONS, COPYING, ZOMBIES, TWO_PHASE, EXCHANGE = "transactions", "copying", "zombies", "two-phase", "exchange"
TRANSACTIONAL = (TRANSACTIONS, COPYING, ZOMBIES, TWO_PHASE, EXCHANGE)
FIRST_TRANSACTIONAL = 20_000_001  # seeds before it are those that planted bugs and plans are recorded with
EAGER = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}  # what nobody goes on with ends soon
HASTY = {"group.min.session.timeout.ms": "100", "group.initial.rebalance.delay.ms": "50"}
SETTINGS = {
    TRANSACTIONS: EAGER,
    COPYING: EAGER | HASTY,
    ZOMBIES: EAGER,
    TWO_PHASE: EAGER | {"transaction.two.phase.commit.enable": "true"},
    EXCHANGE: EAGER,
}


def has_transactions(seed: int) -> bool:
    return seed >= FIRST_TRANSACTIONAL and Random(f"{seed} transactional").randrange(2) == 0


def with_transactions(seed: int, options: Options) -> Options:
    """One of these workloads or two, beside the others; in one run of three without most of these."""
    rng = Random(f"{seed} in transactions")
    names = rng.sample(TRANSACTIONAL, rng.choice((1, 1, 2)))
    others = options.workloads if rng.randrange(3) else options.workloads[:1]
    settings = options.settings
    for name in names:
        settings = settings | SETTINGS[name]
    return structs.replace(options, workloads=(*others, *names), settings=settings)


def alone(options: Options, workload: str) -> Options:
    settings = options.settings | SETTINGS.get(workload, {})
    return structs.replace(options, workloads=(workload,), settings=settings)
