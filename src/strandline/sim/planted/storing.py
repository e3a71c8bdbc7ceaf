"""Bugs of what lies on disk and of what is remembered from it: recovery, checkpoints, producers, groups."""

from strandline.sim.planted.planted import Planted, table

LOG = "strandline.log.log"
CUTTING = "strandline.log.cutting"
SEGMENT = "strandline.log.segment"
EPOCHS = "strandline.log.epochs"
PRODUCERS = "strandline.log.producers"
MARKER = "strandline.log.clean_shutdown"
STORAGE = "strandline.replica.storage"
REPLICAS = "strandline.replica.replicas"
GROUPS = "strandline.group.coordinator"

STORING = table(
    # --- after a crash
    Planted(
        name="recovery-keeps-torn-batches",
        module=SEGMENT,
        old="                if why_invalid(header, buffer) is not None:\n                    break\n",
        new="",
        trap="KAFKA-10471",
        harm="a batch that a power cut damaged is kept and served",
    ),
    Planted(
        name="every-start-counts-as-clean",
        module="strandline.broker.parts",
        old="clean_start=previous_epoch is not None,",
        new="clean_start=True,",
        trap="T27, KAFKA-10471",
        harm="logs are trusted after a crash, torn ends and all",
    ),
    Planted(
        name="marker-outlives-the-start",
        module=MARKER,
        old="            disk.remove(path)\n",
        new="",
        trap="T27, KAFKA-15375",
        harm="the clean-shutdown marker of an earlier stop vouches for logs after a crash",
    ),
    Planted(
        name="marker-removal-not-durable",
        module=MARKER,
        old="            disk.remove(path)\n            disk.sync([directory])",
        new="            disk.remove(path)",
        trap="T27, KAFKA-15375",
        harm="a power cut brings the clean-shutdown marker back",
    ),
    Planted(
        name="marker-before-logs-are-durable",
        module=REPLICAS,
        old="        self.storage.flush_now(now)\n",
        new="",
        trap="T27, KAFKA-15375",
        harm="the clean-shutdown marker vouches for logs whose ends a power cut takes",
    ),
    Planted(
        name="recovery-point-runs-ahead",
        module=STORAGE,
        old="hosted.log.recovery_point for hosted in",
        new="hosted.log.log_end_offset for hosted in",
        trap="KIP-1066, KAFKA-15046",
        harm="the recovery point vouches for batches that were not synced",
    ),
    Planted(
        name="recovery-point-outlives-a-cut",
        module=REPLICAS,
        old="effects += self.storage.truncated()",
        new="effects += self.storage.save_recovery_points()",
        trap="KAFKA-15046",
        harm="after a truncation and a power cut, a saved recovery point vouches for the batches that came instead",
    ),
    Planted(
        name="epochs-not-synced",
        module=LOG,
        old="        self.unsynced_others[path] = None\n        self.unsynced_others[self.directory] = None\n",
        new="",
        trap="T34, KAFKA-16541",
        harm="a power cut takes leader epochs whose records lie below the recovery point, and divergences are missed",
    ),
    # --- truncation, epochs, indexes
    Planted(
        name="epoch-without-records-survives-truncation",
        module=CUTTING,
        old="    if log.epochs.cut_end(offset):\n",
        new="    if offset < log.log_end_offset and log.epochs.cut_end(offset):\n",
        trap="T33, KAFKA-10706",
        harm="an epoch that begins at the log's end is kept, and later answers for records of another one",
    ),
    Planted(
        name="epoch-end-off-by-one",
        module=EPOCHS,
        old="end = self.entries[at].start_offset if at < len(self.entries) else log_end_offset",
        new="end = self.entries[at].start_offset + 1 if at < len(self.entries) else log_end_offset",
        trap="KIP-101",
        harm="a follower keeps one record of an epoch longer than the leader had it",
    ),
    Planted(
        name="index-points-behind",
        module="strandline.log.index",
        old="at = bisect_right(self.offsets, offset - self.base_offset)\n",
        new="at = bisect_right(self.offsets, offset - self.base_offset + 1)\n",
        trap="off by one",
        harm="a read, or a truncation, begins one batch too late",
    ),
    # --- producers
    Planted(
        name="producers-forgotten-by-a-new-leader",
        module=LOG,
        old="for header in self.headers(self.log_start_offset):",
        new="for header in self.headers(self.log_end_offset):",
        trap="KIP-98",
        harm="a batch that is sent again to a new leader is appended twice",
    ),
    Planted(
        name="producers-survive-truncation",
        module=CUTTING,
        old="    log.producers = None\n    while log.active",
        new="    while log.active",
        trap="KAFKA-10706, KIP-98",
        harm="a batch that was truncated is acknowledged as a duplicate of itself",
    ),
    Planted(
        name="producer-gaps-accepted",
        module=PRODUCERS,
        old="return None if batch.base_sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER",
        new="return None",
        trap="KIP-98",
        harm="of several batches in flight the later ones are appended before the first",
    ),
    Planted(
        name="one-batch-remembered",
        module=PRODUCERS,
        old="BATCHES_MAX = 5",
        new="BATCHES_MAX = 1",
        trap="KAFKA-5494",
        harm="of several batches in flight only the last is recognised when they are sent again",
    ),
    # --- groups
    Planted(
        name="offsets-acknowledged-before-replicated",
        module=GROUPS,
        old="batch_of(records, now), now, done)",
        new="batch_of(records, now), now, lambda error, base: []) + done(ErrorCode.NONE, -1)",
        trap="offsets.commit.required.acks",
        harm="a committed offset is acknowledged and lost with the coordinator",
    ),
    Planted(
        name="coordinator-loads-to-its-high-watermark",
        module=REPLICAS,
        old="return hosted.log.read(offset, max_bytes, upto=hosted.log.log_end_offset, min_one=True)",
        new="return hosted.log.read(offset, max_bytes, upto=hosted.high_watermark, min_one=True)",
        trap="T36",
        harm="a new coordinator, whose high watermark is old, does not know the offsets that were acknowledged last",
    ),
    Planted(
        name="coordinator-keeps-an-earlier-term",
        module=GROUPS,
        old="if led.get(partition) != shard.leader_epoch:",
        new="if partition not in led:",
        trap="KAFKA-9851",
        harm="a broker that lost a coordination and has it again answers from what it knew in the first term",
    ),
)
