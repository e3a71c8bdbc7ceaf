"""What a campaign is: which seeds count, how each is run, and with which code. Blocks of one campaign can be added up.

Seeds are cut into blocks at multiples of the block's size. A sample of the seeds is run once more (`AGAIN`), in blocks
of their own, by processes that hash differently: what they do must not differ.
"""

from collections.abc import Iterable, Iterator
from typing import Literal
from zlib import crc32

from strandline.base.value import Value

Run = Literal["first", "again"]
FIRST: Run = "first"
AGAIN: Run = "again"
HASH_SEEDS: dict[Run, str] = {FIRST: "1", AGAIN: "2"}  # PYTHONHASHSEED of the processes that run them
SAMPLE_OF = 10_000


class Campaign(Value, frozen=True):
    """All of it must be the same for blocks to be of one campaign."""

    code_version: str  # of what the simulator runs
    python: str = ""  # "3.11": digests need not be the same in another
    eligible: Literal["gentle", "ruthless"] | None = None  # only seeds with Eligible Leader Replicas, and such faults
    prepare: str = ""  # MODULE:NAME, what every process of it does first: `strandline.sim.runs.prepared`
    limit_s: float = 120.0  # a seed that takes longer on the wall is given up
    again_per_10000: int = 100  # how many of the seeds are run once more


class Block(Value, frozen=True, order=True):
    """Seeds from `first` to `last`, both inclusive."""

    run: Run
    first: int
    last: int

    @property
    def name(self) -> str:
        return f"{self.run}-{self.first}-{self.last}"


class Task(Value, frozen=True):
    """What the process that runs a block needs to know."""

    campaign: Campaign
    block: Block


def block_named(name: str) -> Block | None:
    """The inverse of `Block.name`; None: it is not the name of a block."""
    run, _, span = name.partition("-")
    first, _, last = span.partition("-")
    if run not in HASH_SEEDS or not (first.isdigit() and last.isdigit()):
        return None
    return Block(FIRST if run == FIRST else AGAIN, int(first), int(last))


def blocks_left(seeds: range, size: int, again_per_10000: int, done: Iterable[Block]) -> list[Block]:
    """What must still be run of `seeds`, whatever the blocks were that are done. Those of the second run come last:
    then other processes, and if there are some other machines, will mostly have them."""
    known = list(done)
    found = [Block(FIRST, *span) for span in spans_left(seeds, size, [b for b in known if b.run == FIRST])]
    if again_per_10000:
        # So many seeds that about `size` of them are in the sample.
        wide = size * SAMPLE_OF // again_per_10000
        found += [Block(AGAIN, *span) for span in spans_left(seeds, wide, [b for b in known if b.run == AGAIN])]
    return found


def spans_left(seeds: range, size: int, done: list[Block]) -> Iterator[tuple[int, int]]:
    """`seeds` without those of `done`, cut at multiples of `size`; both ends inclusive."""
    at = seeds.start
    for block in [*sorted(done), Block(FIRST, seeds.stop, seeds.stop)]:
        end = min(block.first, seeds.stop)
        while at < end:
            stop = min((at // size + 1) * size, end)
            yield at, stop - 1
            at = stop
        at = max(at, block.last + 1)


def sampled(seeds: list[int], again_per_10000: int) -> list[int]:
    """Those that are run again, at least one of them; which ones follows from their numbers."""
    drawn = {seed: crc32(f"again {seed}".encode()) % SAMPLE_OF for seed in seeds}
    found = [seed for seed in seeds if drawn[seed] < again_per_10000]
    return found or sorted(seeds, key=drawn.__getitem__)[:1]


def differences(was: Campaign, now: Campaign) -> list[str]:
    """In which of its parts another campaign differs, for people."""
    return [
        f"{name.replace('_', ' ')}: {getattr(was, name) or 'none'}, and now {getattr(now, name) or 'none'}"
        for name in Campaign.__struct_fields__
        if getattr(was, name) != getattr(now, name)
    ]
