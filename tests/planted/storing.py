"""Bugs of what lies on disk and of what is remembered from it: recovery, checkpoints, producers, groups."""

from tests.planted.planted import Change, Planted, table

BATCH = "strandline.wire.batch"
LOG = "strandline.log.log"
STORED = "strandline.log.files.stored_log"
SEGMENT = "strandline.log.segment"
EPOCHS = "strandline.log.epochs"
PRODUCERS = "strandline.log.producers.producers"
PRODUCING = "strandline.replica.serving.producing"
PRODUCER_STATE = "strandline.log.producers.producer_state"
MARKER = "strandline.log.evidence.clean_shutdown"
CHECKPOINTS = "strandline.replica.storage.checkpoints"
LOADING = "strandline.replica.storage.opening.loading"
REPLICAS = "strandline.replica.replicas"

# A start compares its logs with what the marker says of them, and would find what these bugs let through.
UNCOMPARED = Change(
    LOADING,
    "rows = left.get(log_dir.path) if clean and left is not None else None",
    "rows = None",
)

STORING = table(
    # --- after a crash
    Planted(
        name="recovery-keeps-torn-batches",
        module=SEGMENT,
        old="                if why_invalid(header, buffer) is not None:\n                    break\n",
        new="",
        trap="KAFKA-10471",
        harm="a batch that a power cut damaged is kept and served",
        seeds=(4, 4),
    ),
    Planted(
        name="every-start-counts-as-clean",
        module="strandline.broker.parts",
        old="clean_start=stop is not None,",
        new="clean_start=True,",
        trap="T27, KAFKA-10471",
        harm="logs are trusted after a crash, torn ends and all",
        seeds=(4, 4),
    ),
    Planted(
        name="marker-outlives-the-start",
        module=MARKER,
        old="            disk.remove(path)\n",
        new="",
        trap="T27, KAFKA-15375",
        harm="the clean-shutdown marker of an earlier stop vouches for logs after a crash",
        seeds=(44, 44),
        also=UNCOMPARED,
    ),
    Planted(
        name="marker-before-logs-are-durable",
        module=REPLICAS,
        old="        self.storage.flush_now(now)\n",
        new="",
        trap="T27, KAFKA-15375",
        harm="the clean-shutdown marker vouches for logs whose ends a power cut takes",
        seeds=(2, 2),
        plan="marker-before-logs-are-durable.json",
        also=UNCOMPARED,
    ),
    Planted(
        name="recovery-point-runs-ahead",
        module=CHECKPOINTS,
        old="hosted.log.recovery_point for hosted in",
        new="hosted.log.log_end_offset for hosted in",
        trap="KIP-1066, KAFKA-15046",
        harm="the recovery point vouches for batches that were not synced",
        seeds=(2, 2),
        plan="recovery-point-runs-ahead.json",
    ),
    Planted(
        name="older-checkpoint-overtakes",
        module=CHECKPOINTS,
        old="            self.disk.save(path, content)\n",
        new="            self.disk.save_since(path, content, self.disk.saves(path))\n",
        trap="KIP-1066",
        harm="a save that was on its way brings the recovery point back that a truncation has lowered",
        seeds=(1, 1),
        plan="older-checkpoint-overtakes.json",
    ),
    # --- truncation, epochs, indexes
    Planted(
        name="epoch-without-records-survives-truncation",
        module=STORED,
        old="        self.epoch_file.cut_end(offset)\n",
        new="        if offset < self.log_end_offset:\n            self.epoch_file.cut_end(offset)\n",
        trap="T33, KAFKA-10706",
        harm="an epoch that begins at the log's end is kept, and later answers for records of another one",
        seeds=(3, 3),
        plan="epoch-without-records-survives-truncation.json",
    ),
    Planted(
        name="epoch-end-off-by-one",
        module=EPOCHS,
        old="end = self.entries[at].start_offset if at < len(self.entries) else log_end_offset",
        new="end = self.entries[at].start_offset + 1 if at < len(self.entries) else log_end_offset",
        trap="KIP-101",
        harm="a follower keeps one record of an epoch longer than the leader had it",
        seeds=(1, 1),
    ),
    Planted(
        name="index-points-behind",
        module="strandline.log.indexes.sparse",
        old="at = bisect_right(self.offsets, offset - self.base_offset)\n",
        new="at = bisect_right(self.offsets, offset - self.base_offset + 1)\n",
        trap="off by one",
        harm="a read, or a truncation, begins one batch too late",
        seeds=(9, 9),
    ),
    # --- producers
    Planted(
        name="producers-forgotten-by-a-new-leader",
        module=LOG,
        old="self.producer_state.ended(self.producers.appended(header, header.base_offset, now, marker=marker))\n",
        new="pass\n",
        trap="KIP-98",
        harm="a batch that is sent again to a new leader is appended twice",
        seeds=(6, 6),
    ),
    Planted(
        name="producer-gaps-accepted",
        module=PRODUCERS,
        old="return None if batch.base_sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER",
        new="return None",
        trap="KIP-98",
        harm="of several batches in flight the later ones are appended before the first",
        seeds=(4, 4),
    ),
    Planted(
        name="one-batch-remembered",
        module=PRODUCERS,
        old="BATCHES_MAX = 5",
        new="BATCHES_MAX = 1",
        trap="KAFKA-5494",
        harm="of several batches in flight only the last is recognised when they are sent again",
        seeds=(1, 1),
    ),
    Planted(
        name="producer-snapshot-survives-truncation",
        module=PRODUCER_STATE,
        old="        self.keep([offset for offset in self.snapshots if offset <= end])\n",
        new="",
        trap="KIP-98, KAFKA-5793",
        harm="a leader takes batches for known that a truncation took from its log, and acknowledges them",
        seeds=(1, 1),
    ),
    Planted(
        name="duplicate-answered-before-it-is-committed",
        module=PRODUCING,
        old="if acks == ACKS_ALL and leader.high_watermark <= appended.last_offset:",
        new="if acks == ACKS_ALL and not appended.duplicate and leader.high_watermark <= appended.last_offset:",
        trap="KIP-98",
        harm="a batch that is sent again is acknowledged while no other replica has it",
        seeds=(1, 1),
    ),
    Planted(
        name="producer-snapshot-ahead-of-the-log",
        module=PRODUCER_STATE,
        old="if offset <= end and offset < believed_below]",
        new="]",
        trap="KIP-98",
        harm="after a crash a log knows of producers' batches that it has lost",
        seeds=(4, 4),
    ),
    # --- batches in the topic's codec
    Planted(
        name="recompressed-batch-forgets-its-producer",
        module=BATCH,
        old="    batch[HEADER_SIZE:] = packed\n",
        new="    batch[HEADER_SIZE:] = packed\n    batch[43:57] = bytes([255]) * 14\n",
        trap="KIP-98",
        harm="what an idempotent producer sends again is appended again where the topic has a codec of its own",
        seeds=(1, 1),
        plan="recompressed-batch-forgets-its-producer.json",
    ),
    Planted(
        name="recompressed-batch-keeps-its-length",
        module=LOG,
        old="            buffer, header = stored, read_header(stored)\n",
        new="            buffer = stored\n",
        trap="the format of batches",
        harm="a batch says the length that it had before, and nobody can read what follows it",
        seeds=(1, 1),
        plan="recompressed-batch-keeps-its-length.json",
    ),
    # --- rot
    Planted(
        name="repair-at-the-wrong-place",
        module="strandline.replica.scrubbing.repairs",
        old="segment.file.write_at(damage.position, patch)",
        new="segment.file.write_at(0, patch)",
        trap="beyond Kafka",
        harm="a repair overwrites what was sound",
        seeds=(201, 201),
        plan="repair-at-the-wrong-place.json",
    ),
    Planted(
        name="scrubber-trusts-every-crc",
        module="strandline.log.evidence.soundness",
        old="    if why_invalid(header, buffer) is not None:\n        return False\n",
        new="",
        trap="beyond Kafka",
        harm="what has rotted stays as it is, though other replicas have what it was",
        seeds=(10, 10),
    ),
)
