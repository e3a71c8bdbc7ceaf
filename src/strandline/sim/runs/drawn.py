"""Which seeds have an authorizer whose ACLs change under way, which meet somebody who forges what nodes send, which
read from a slow medium, and which apply metadata in very small steps."""

from random import Random

from msgspec import structs

from strandline.sim.world.options import Options

SECURED = ("authorizer", "intruder", "both")
FIRST_SECURED = 30_000_001  # seeds before it are those that planted bugs, plans and regressions are recorded with
FIRST_COLD = 50_000_001
FIRST_STEPS = 60_000_001


def has_authorizer(seed: int) -> bool:
    return seed >= FIRST_SECURED and Random(f"{seed} authorizer").randrange(5) == 0


def meets_intruder(seed: int) -> bool:
    """Drawn apart: with an authorizer and without one."""
    return seed >= FIRST_SECURED and Random(f"{seed} intruder").randrange(3) == 0


def secured(seed: int, options: Options, *, authorizer: bool | None = None, intruder: bool | None = None) -> Options:
    """None: as the seed draws it."""
    if has_authorizer(seed) if authorizer is None else authorizer:
        pause_ms = Random(f"{seed} permissions").choice((10, 20, 40, 100))
        options = structs.replace(options, authorizer=True, permissions_ms=pause_ms)
    if meets_intruder(seed) if intruder is None else intruder:
        pause_ms = Random(f"{seed} forging").choice((5, 20, 20, 60))
        options = structs.replace(options, intruder_ms=pause_ms)
    return options


def cold(seed: int, options: Options) -> Options:
    """In half of the later seeds some old records are not in the page cache."""
    rng = Random(f"{seed} cold")
    if seed < FIRST_COLD or rng.randrange(2):
        return options
    return structs.replace(options, cold_percent=rng.choice((5, 30, 100)), cold_ms=rng.choice((5, 50, 300)))


def in_steps(seed: int, options: Options) -> Options:
    """In half of the later seeds most batches of metadata take several steps."""
    rng = Random(f"{seed} steps")
    if seed < FIRST_STEPS or rng.randrange(2):
        return options
    return structs.replace(options, step_records=rng.choice((1, 2, 5)))
