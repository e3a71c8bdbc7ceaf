"""What must hold of what a log knows of idempotent producers: it is what a walk over the log's batches says.

- nothing is known of a batch that the log does not have, unless it was deleted at the log's start
- of each producer's latest epoch the last batches are known, as many as are remembered, in order; a marker may
  have a later epoch than the batches of its transaction. Batches without a sequence (a coordinator's, of offsets in a
  transaction) are not remembered
- a compacted log may lack batches that are known, and what is known of a producer ends with its last batch, or behind
"""

from strandline.log.log import Log
from strandline.replica.hosting.hosted import Hosted
from strandline.sim.world.machine import Machine

BATCHES_MAX = 5  # Kafka's: what an idempotent client may have in flight
Batch = tuple[int, int, int]  # first sequence, base offset, last offset


def check_producers(machine: Machine, hosted: Hosted) -> None:
    if not (machine.is_rotten or machine.has_lost(hosted)):  # a bit of a header may have changed on its disk
        compare(f"{machine.name}, {hosted.name}", hosted.log)


def compare(who: str, log: Log) -> None:
    said: dict[int, tuple[int, list[Batch]]] = {}
    for header in log.headers(log.log_start_offset):
        if header.producer_id < 0:
            continue
        epoch, batches = said.get(header.producer_id, (header.producer_epoch, []))
        if epoch != header.producer_epoch:
            batches = []
        if header.is_control:
            said[header.producer_id] = (header.producer_epoch, batches)
            continue
        if header.base_sequence >= 0:
            batches.append((header.base_sequence, header.base_offset, header.last_offset))
        said[header.producer_id] = (header.producer_epoch, batches)
    for producer_id, producer in log.producers.known.items():
        known = [(one.first_sequence, one.base_offset, one.last_offset) for one in producer.batches]
        epoch, batches = said.get(producer_id, (producer.epoch, []))
        there = [batch for batch in known if batch[2] >= log.log_start_offset]
        expected = batches[-BATCHES_MAX:]
        if log.has_gaps:
            assert not expected or (there and there[-1][1:] >= expected[-1][1:]), (
                f"{who} knows {there} of producer {producer_id}, and has {expected} of epoch {epoch}"
            )
            continue
        assert producer.epoch == epoch and there == expected[len(expected) - len(there) :], (
            f"{who} knows {there} of producer {producer_id} in epoch {producer.epoch}, and has {expected} of epoch"
            f" {epoch}"
        )
        assert len(there) == len(expected), f"{who} has forgotten {expected} of producer {producer_id}: {there}"
    forgotten = [producer_id for producer_id in said if producer_id not in log.producers.known]
    assert not forgotten, f"{who} has batches of producers {forgotten}, and does not know them"
