"""Bugs of the cleaner: what it takes, when, and what a power cut leaves of it."""

from tests.planted.changes import NEVER, Gives, Swap
from tests.planted.planted import Planted, table

COMPACTING = table(
    Planted(
        name="cleaned-above-the-high-watermark",
        how=Gives("log.log_end_offset"),
        trap="Kafka cleans below the last stable offset",
        harm="a committed record goes for one that is cut, or that no disk has yet",
        plan="cleaned-above-the-high-watermark.json",
        seeds=(1, 1),
    ),
    Planted(
        name="last-of-a-key-dropped",
        how=Swap("<", "<="),
        trap="off by one",
        harm="the one record that compaction promises to keep is gone",
        plan="last-of-a-key-dropped.json",
        seeds=(1, 1),
    ),
    Planted(
        name="tombstone-dropped-at-once",
        how=Gives("record.value is not None"),
        trap="KIP-534",
        harm="who has read the value never hears that it was deleted",
        plan="tombstone-dropped-at-once.json",
        seeds=(2, 2),
    ),
    Planted(
        name="swapped-before-durable",
        how=Gives("self.synced(Synced(CleanedSynced(self.count, run.directory)), now)"),
        trap="Kafka flushes `.cleaned` first",
        harm="a power cut takes the copy, and what it was made from is gone",
        plan="swapped-before-durable.json",
        seeds=(1, 1),
    ),
    Planted(
        name="swap-not-finished-at-start",
        how=NEVER,
        trap="Kafka finishes swaps in LogLoader",
        harm="after a power cut in the middle of a swap the log has a hole, or records twice",
        plan="swap-not-finished-at-start.json",
        seeds=(1, 3),
    ),
    Planted(
        name="lost-segment-taken-for-a-gap",
        how=Gives("end == following or (end < following and gaps.are_possible)"),
        trap="gaps between batches are legal in a compacted log",
        harm="a power cut takes a segment that was not synced, and what comes behind it is kept",
        plan="lost-segment-taken-for-a-gap.json",
        seeds=(1, 1),
    ),
)
