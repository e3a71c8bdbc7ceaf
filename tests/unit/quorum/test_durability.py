"""What of the metadata log is durable, while syncs are on their way."""

from tests.unit.broker.test_committed import GOOD, NOW, opened, write

from strandline.base.effects import Sync
from strandline.metadata.framing import encode_record
from strandline.quorum.ports import SnapshotId
from strandline.quorum.storage.durability import Durability
from strandline.quorum.storage.snapshot_file import encode_snapshot


def test_a_sync_that_was_on_its_way_when_a_snapshot_took_the_logs_place_says_nothing_against_it() -> None:
    log = opened()
    durability = Durability(log)
    write(log, GOOD[0])
    assert [type(effect) for effect in durability.sync()] == [Sync]
    snapshot = SnapshotId(5, 1)
    log.begin_part(snapshot)
    log.append_part(snapshot, encode_snapshot([encode_record(GOOD[1])], 1, NOW))
    assert log.name_part(snapshot) is None
    durability.install_snapshot(snapshot)
    durability.synced()
    assert durability.end == 5
    assert durability.is_complete
    durability.check()
