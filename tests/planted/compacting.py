"""Bugs of the cleaner: what it takes, when, and what a power cut leaves of it."""

from tests.planted.planted import Planted, table

COMPACTION = "strandline.log.cleaning.compaction"

COMPACTING = table(
    Planted(
        name="cleaned-above-the-high-watermark",
        module="strandline.log.cleaning.cleanable",
        old="    bound = min(stable_end, log.recovery_point)\n",
        new="    bound = log.log_end_offset\n",
        trap="Kafka cleans below the last stable offset",
        harm="a committed record goes for one that is cut, or that no disk has yet",
        plan="cleaned-above-the-high-watermark.json",
        seeds=(1, 1),
    ),
    Planted(
        name="last-of-a-key-dropped",
        module=COMPACTION,
        old="record.offset < self.last_of_key.get(fingerprint(record.key), -1)",
        new="record.offset <= self.last_of_key.get(fingerprint(record.key), -1)",
        trap="off by one",
        harm="the one record that compaction promises to keep is gone",
        plan="last-of-a-key-dropped.json",
        seeds=(1, 1),
    ),
    Planted(
        name="tombstone-dropped-at-once",
        module=COMPACTION,
        old="return record.value is not None or not header.has_delete_horizon or self.now < header.base_timestamp",
        new="return record.value is not None",
        trap="KIP-534",
        harm="who has read the value never hears that it was deleted",
        plan="tombstone-dropped-at-once.json",
        seeds=(2, 2),
    ),
    Planted(
        name="swapped-before-durable",
        module="strandline.replica.storage.cleaning",
        old="        return [Sync(run.compaction.unsynced(), CleanedSynced(self.count, run.directory))]\n",
        new="        return self.synced(Synced(CleanedSynced(self.count, run.directory)), now)\n",
        trap="Kafka flushes `.cleaned` first",
        harm="a power cut takes the copy, and what it was made from is gone",
        plan="swapped-before-durable.json",
        seeds=(1, 1),
    ),
    Planted(
        name="swap-not-finished-at-start",
        module="strandline.log.files.opening",
        old="    if finish_swaps(disk, directory):\n        unsynced.add(directory)\n",
        new="",
        trap="Kafka finishes swaps in LogLoader",
        harm="after a power cut in the middle of a swap the log has a hole, or records twice",
        plan="swap-not-finished-at-start.json",
        seeds=(11, 12),
    ),
    Planted(
        name="lost-segment-taken-for-a-gap",
        module="strandline.log.files.opening",
        old="    return end == following or gaps.may_separate(end, following)\n",
        new="    return end == following or (end < following and gaps.are_possible)\n",
        trap="gaps between batches are legal in a compacted log",
        harm="a power cut takes a segment that was not synced, and what comes behind it is kept",
        plan="lost-segment-taken-for-a-gap.json",
        seeds=(37, 37),
    ),
)
