"""Bugs of what lies on disk and of what is remembered from it: recovery, checkpoints, producers, groups."""

from tests.planted.changes import ALWAYS, NEVER, SKIP, Gives, Instead, Swap
from tests.planted.planted import Change, Planted, table

# A start compares its logs with what the marker says of them, and would find what these bugs let through.
UNCOMPARED = Change("logs-compared-with-the-marker", NEVER)

STORING = table(
    # --- after a crash
    Planted(
        name="recovery-keeps-torn-batches",
        how=NEVER,
        trap="KAFKA-10471",
        harm="a batch that a power cut damaged is kept and served",
        seeds=(4, 4),
    ),
    Planted(
        name="every-start-counts-as-clean",
        how=ALWAYS,
        trap="T27, KAFKA-10471",
        harm="logs are trusted after a crash, torn ends and all",
        seeds=(4, 4),
    ),
    Planted(
        name="marker-outlives-the-start",
        how=SKIP,
        trap="T27, KAFKA-15375",
        harm="the clean-shutdown marker of an earlier stop vouches for logs after a crash",
        seeds=(44, 44),
        also=UNCOMPARED,
    ),
    Planted(
        name="marker-before-logs-are-durable",
        how=SKIP,
        trap="T27, KAFKA-15375",
        harm="the clean-shutdown marker vouches for logs whose ends a power cut takes",
        seeds=(2, 2),
        plan="marker-before-logs-are-durable.json",
        also=UNCOMPARED,
    ),
    Planted(
        name="recovery-point-runs-ahead",
        how=Swap("recovery_point", "log_end_offset"),
        trap="KIP-1066, KAFKA-15046",
        harm="the recovery point vouches for batches that were not synced",
        seeds=(2, 2),
        plan="recovery-point-runs-ahead.json",
    ),
    Planted(
        name="older-checkpoint-overtakes",
        how=Gives("self.disk.save_since(path, content, self.disk.saves(path))"),
        trap="KIP-1066",
        harm="a save that was on its way brings the recovery point back that a truncation has lowered",
        seeds=(2, 2),
        plan="older-checkpoint-overtakes.json",
    ),
    # --- truncation, epochs, indexes
    Planted(
        name="epoch-without-records-survives-truncation",
        how=Instead("if offset < self.log_end_offset:\n    ..."),
        trap="T33, KAFKA-10706",
        harm="an epoch that begins at the log's end is kept, and later answers for records of another one",
        seeds=(3, 3),
        plan="epoch-without-records-survives-truncation.json",
    ),
    Planted(
        name="epoch-end-off-by-one",
        how=Swap("start_offset", "start_offset + 1"),
        trap="KIP-101",
        harm="a follower keeps one record of an epoch longer than the leader had it",
        seeds=(1, 1),
    ),
    Planted(
        name="index-points-behind",
        how=Swap("self.base_offset", "self.base_offset + 1"),
        trap="off by one",
        harm="a read, or a truncation, begins one batch too late",
        seeds=(9, 9),
    ),
    # --- producers
    Planted(
        name="producers-forgotten-by-a-new-leader",
        how=SKIP,
        trap="KIP-98",
        harm="a batch that is sent again to a new leader is appended twice",
        seeds=(6, 6),
    ),
    Planted(
        name="producer-gaps-accepted",
        how=ALWAYS,
        trap="KIP-98",
        harm="of several batches in flight the later ones are appended before the first",
        seeds=(4, 4),
    ),
    Planted(
        name="one-batch-remembered",
        how=Gives("1"),
        trap="KAFKA-5494",
        harm="of several batches in flight only the last is recognised when they are sent again",
        seeds=(1, 1),
    ),
    Planted(
        name="producer-snapshot-survives-truncation",
        how=SKIP,
        trap="KIP-98, KAFKA-5793",
        harm="a leader takes batches for known that a truncation took from its log, and acknowledges them",
        seeds=(4, 4),
    ),
    Planted(
        name="producer-snapshot-ahead-of-the-log",
        how=ALWAYS,
        trap="KIP-98",
        harm="after a crash a log knows of producers' batches that it has lost",
        seeds=(4, 4),
    ),
    # --- batches in the topic's codec
    Planted(
        name="recompressed-batch-forgets-its-producer",
        how=Instead("...\nbatch[43:57] = bytes([255]) * 14"),
        trap="KIP-98",
        harm="what an idempotent producer sends again is appended again where the topic has a codec of its own",
        seeds=(1, 1),
        plan="recompressed-batch-forgets-its-producer.json",
    ),
    Planted(
        name="recompressed-batch-keeps-its-length",
        how=Instead("buffer = stored"),
        trap="the format of batches",
        harm="a batch says the length that it had before, and nobody can read what follows it",
        seeds=(1, 1),
        plan="recompressed-batch-keeps-its-length.json",
    ),
    # --- rot
    Planted(
        name="repair-at-the-wrong-place",
        how=Swap("damage.position", "0"),
        trap="beyond Kafka",
        harm="a repair overwrites what was sound",
        seeds=(201, 201),
        plan="repair-at-the-wrong-place.json",
    ),
    Planted(
        name="scrubber-trusts-every-crc",
        how=NEVER,
        trap="beyond Kafka",
        harm="what has rotted stays as it is, though other replicas have what it was",
        seeds=(10, 10),
    ),
)
