"""Mutants of the transactions of a log."""

from tests.mutants.mutant import Breaks, Mutant, table

LOGGED = "unit/log/producers/test_transactions.py::"
COMPACTED = "property/log/test_compacted_transactions.py::"
SCANNED = "property/log/test_log_transactions.py::"

TRANSACTIONS = table(
    Mutant(
        "a batch of a newer epoch joins the transaction that waits for its marker",
        "log/log.py",
        "if header.producer_epoch > self.producers.known[header.producer_id].epoch else None",
        "if False else None",
        Breaks.AGREEMENT,
        (LOGGED + "test_a_batch_of_a_newer_epoch_never_joins_the_transaction_that_waits_for_its_marker",),
        holds=("890.20", "KAFKA-18575"),
    ),
    Mutant(
        "a late marker ends a later transaction",
        "log/producers/producers.py",
        "if epoch < producer.epoch or is_late:",
        "if epoch < producer.epoch:",
        Breaks.DURABILITY,
        (LOGGED + "test_a_marker_of_a_former_epoch_or_coordinator_is_refused",),
        holds=("890.19",),
    ),
    Mutant(
        "a coordinator that was replaced ends a transaction",
        "log/producers/producers.py",
        "if marker.coordinator_epoch < producer.coordinator_epoch:",
        "if False:",
        Breaks.DURABILITY,
        (LOGGED + "test_a_marker_of_a_former_epoch_or_coordinator_is_refused",),
        holds=("98.21",),
    ),
    Mutant(
        "a marker decides a transaction for readers before it is committed",
        "log/producers/transactions.py",
        "bounds = [high_watermark, *(one.first_offset for one in self.ended)]",
        "bounds = [high_watermark]",
        Breaks.DURABILITY,
        (SCANNED + "test_the_last_stable_offset_waits_for_markers_to_be_committed_and_never_moves_back",),
        holds=("98.30",),
    ),
    Mutant(
        "a compacted log says of a transaction that is gone that it was aborted",
        "log/cleaning/compaction.py",
        "if entry.last_offset not in self.kept.decided.gone:",
        "if entry:",
        Breaks.DURABILITY,
        (
            LOGGED + "test_a_marker_goes_when_nothing_of_its_transaction_is_left_and_readers_had_their_time",
            COMPACTED + "test_a_consumer_finds_what_was_committed_and_nothing_stays_open",
        ),
        holds=("98.39",),
    ),
    Mutant(
        "a marker goes though an empty batch of its transaction stays",
        "log/cleaning/compaction.py",
        "        self.decided.keeps(header)\n        if not kept:",
        "        if kept:\n            self.decided.keeps(header)\n        if not kept:",
        Breaks.AGREEMENT,
        (LOGGED + "test_a_batch_that_stays_empty_keeps_the_marker_of_its_transaction",),
        holds=("98.39",),
    ),
    Mutant(
        "aborted records take the place of committed ones",
        "log/cleaning/compaction.py",
        "header.is_control or self.kept.decided.is_aborted(header):",
        "header.is_control:",
        Breaks.DURABILITY,
        (LOGGED + "test_aborted_records_go_and_do_not_take_the_place_of_committed_ones",),
        holds=("98.38",),
    ),
    Mutant(
        "a swap that the power cut ends without its index of aborted transactions",
        "log/files/swapping.py",
        "    distrust_aborted(disk, directory, base_offset)\n",
        "",
        Breaks.DURABILITY,
        (LOGGED + "test_an_index_renamed_before_its_records_is_built_again",),
        holds=("98.36",),
    ),
    Mutant(
        "a start cuts the damage from an index of aborted transactions, and believes the rest",
        "log/indexes/aborted.py",
        "        if len(kept) == len(self.entries):\n            return False",
        "        if self.is_whole and len(kept) == len(self.entries):\n            return False",
        Breaks.DURABILITY,
        (LOGGED + "test_a_damaged_index_is_built_again_from_the_batches",),
        holds=("98.36",),
    ),
)
