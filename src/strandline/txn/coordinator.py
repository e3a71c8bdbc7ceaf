"""The transaction coordinator of one broker: all transactional ids whose `__transaction_state` partition it leads.

Here a request finds its part: `initializing` (producers), `adding` (partitions), `ending` (decisions), `markers` (what
follows from these), `expiring` (time), `listing` (operators). `shards` says which ids are this broker's, and writes
them.
"""

from collections.abc import Callable

from strandline.base.effects import Answered, Effect, Failed, Received
from strandline.base.time import Instant
from strandline.coordination.internal_log import InternalLog
from strandline.metadata.features import TXN_FEATURE
from strandline.metadata.image import Delta, Image
from strandline.txn.adding import Adding
from strandline.txn.config import TxnConfig
from strandline.txn.ending import Ending
from strandline.txn.expiring import Expiring
from strandline.txn.initializing import Initializing
from strandline.txn.listing import Listing
from strandline.txn.markers import Markers
from strandline.txn.ports import ProducerIdSource
from strandline.txn.shard import Shard
from strandline.txn.shards import TxnShards
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from strandline.wire.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from strandline.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.transactions.end_txn import EndTxnRequest
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest


class Transactions:
    def __init__(self, config: TxnConfig, log: InternalLog, ids: ProducerIdSource) -> None:
        self.shards = TxnShards(log)
        self.markers = Markers(self.shards)
        self.ending = Ending(self.shards, ids, self.markers)
        self.initializing = Initializing(config, self.shards, ids, self.ending)
        self.adding = Adding(self.shards)
        self.expiring = Expiring(config, self.shards, self.ending)
        self.listing = Listing(self.shards)
        self.routes: dict[type, Callable[[Received, Instant], list[Effect]]] = {
            InitProducerIdRequest: self.initializing.init_producer_id,
            AddPartitionsToTxnRequest: self.adding.add_partitions,
            AddOffsetsToTxnRequest: self.adding.add_offsets,
            EndTxnRequest: self.ending.end_txn,
            DescribeTransactionsRequest: self.listing.describe,
            ListTransactionsRequest: self.listing.list_transactions,
        }

    def answer(self, received: Received, now: Instant) -> list[Effect]:
        return self.routes[type(received.message)](received, now)

    def step(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        return self.markers.step(event, now)

    def apply(self, image: Image, delta: Delta, now: Instant) -> list[Effect]:
        """Leadership of `__transaction_state`, or of partitions that wait for markers, may have moved. Call after the
        replicas have applied the same delta."""
        self.markers.image = self.adding.image = image
        self.ending.version = image.features.get(TXN_FEATURE, 0)
        effects = self.follow_leadership(now) if self.shards.is_touched(image, delta) else []
        return effects + (self.markers.moved(now) if self.markers.decisions else [])

    def follow_leadership(self, now: Instant) -> list[Effect]:
        gone, new = self.shards.follow_leadership(now)
        assert not any(self.shards.loaded.get(shard.partition) is shard for shard in gone), "nobody asks them any more"
        self.markers.dropped(gone)
        effects = self.begin(new, now)
        for shard in gone:
            for entry in shard.entries.values():
                if entry.waiting:
                    effects += self.shards.wake(entry, now)  # to be refused
        return effects

    def begin(self, new: list[Shard], now: Instant) -> list[Effect]:
        """These are loaded."""
        assert all(self.shards.loaded.get(shard.partition) is shard for shard in new)
        effects = self.markers.loaded(new, now)
        if self.shards.loaded:
            self.expiring.begin(now)
        return effects

    # --- time

    def deadline(self) -> Instant:
        shards = self.shards
        first = min(shards.next_load, self.markers.next_try)
        if shards.waiters:
            first = min(first, shards.first_due())
        return min(first, self.expiring.deadline()) if shards.loaded else first

    def expire(self, now: Instant) -> list[Effect]:
        effects = self.begin(self.shards.go_on(now), now) if self.shards.next_load <= now else []
        effects += self.shards.expire(now)
        effects += self.markers.expire(now)
        if self.shards.loaded:
            effects += self.expiring.expire(now)
        return effects

    def check(self) -> None:
        self.shards.check()
        self.markers.check()
        for shard in self.shards.loaded.values():
            shard.check()
            for entry in shard.entries.values():
                assert entry.is_decided == (entry in self.markers.decisions), "a decision is carried out, and no other"
