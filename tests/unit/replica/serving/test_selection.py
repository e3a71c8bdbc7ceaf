"""Which replica a leader offers to a consumer that says where it is (KIP-392)."""

import pytest
from msgspec import structs
from tests.unit.replica.test_scripts import a_batch, a_log

from strandline.base.effects import Endpoint
from strandline.base.ids import ZERO_UUID, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch
from strandline.base.time import Instant
from strandline.metadata.image import Broker, Partition
from strandline.replica.hosting.leader import NEVER_FETCHED, Cluster, Leader
from strandline.replica.serving.selection import preferred_read_replica, select_in_rack

NOW = Instant(1_000_000)
RACKS = {1: "a", 2: "b", 3: "b", 4: "c"}


class Setup:
    """Broker 1 leads ten records from rack a; 2 and 3 are in rack b and 4 in c, all in sync and with everything."""

    def __init__(self) -> None:
        self.cluster = Cluster(NodeId(1))
        self.brokers = {NodeId(node): broker(node) for node in RACKS}
        self.cluster.brokers = self.brokers
        nodes = tuple(NodeId(node) for node in RACKS)
        partition = Partition(
            replicas=nodes,
            directories=(ZERO_UUID,) * 4,
            isr=nodes,
            leader=NodeId(1),
            leader_epoch=LeaderEpoch(0),
            partition_epoch=PartitionEpoch(0),
        )
        log = a_log()
        self.leader = Leader(self.cluster, log, partition, high_watermark=0, min_isr=1, lag_time_max_ms=30_000, now=NOW)
        log.append_as_leader(a_batch(10), self.leader.epoch, NOW)
        for node in nodes[1:]:
            self.fetched(node, 10)

    def fetched(self, node: int, offset: int, start: int = 0, after_ms: int = 0) -> None:
        self.leader.fetched(NodeId(node), offset, start, BrokerEpoch(10 + node), Instant(NOW + after_ms))

    def chosen(self, rack: str, offset: int = 5, listener: str = "PLAINTEXT") -> int | None:
        return preferred_read_replica(
            select_in_rack, self.leader, self.brokers, offset=offset, rack=rack, listener=listener
        )


def broker(node: int, **changes: object) -> Broker:
    made = Broker(
        NodeId(node),
        ZERO_UUID,
        BrokerEpoch(10 + node),
        {"PLAINTEXT": Endpoint("h", node)},
        rack=RACKS[node],
        fenced=False,
    )
    return structs.replace(made, **changes)


@pytest.fixture
def setup() -> Setup:
    return Setup()


def test_the_replica_in_the_consumers_rack(setup: Setup) -> None:
    assert setup.chosen("c") == 4


def test_the_leader_if_it_is_in_the_consumers_rack_too(setup: Setup) -> None:
    setup.brokers[NodeId(4)] = broker(4, rack="a")
    assert setup.chosen("a") is None


def test_the_leader_if_nobody_is_in_that_rack(setup: Setup) -> None:
    assert setup.chosen("z") is None


def test_of_two_in_one_rack_the_one_with_more(setup: Setup) -> None:
    setup.fetched(3, 9)
    assert setup.chosen("b") == 2


def test_of_two_with_as_much_the_one_that_caught_up_later_then_the_larger_id(setup: Setup) -> None:
    assert setup.chosen("b") == 3
    setup.fetched(2, 10, after_ms=1)
    assert setup.chosen("b") == 2


@pytest.mark.parametrize(("offset", "chosen"), [(3, None), (4, 4), (8, 4), (9, None)])
def test_a_replica_without_the_offset_is_not_offered(setup: Setup, offset: int, chosen: int | None) -> None:
    setup.fetched(4, 8, start=4)
    assert setup.chosen("c", offset) == chosen


def test_a_replica_out_of_sync_is_not_offered_even_if_it_has_everything(setup: Setup) -> None:
    setup.leader.reassigned(
        Partition(
            replicas=(NodeId(1), NodeId(4)),
            directories=(ZERO_UUID,) * 2,
            isr=(NodeId(1),),
            leader=NodeId(1),
            leader_epoch=LeaderEpoch(0),
            partition_epoch=PartitionEpoch(1),
        ),
        1,
    )
    assert setup.leader.followers[NodeId(4)].log_end_offset == 10
    assert setup.chosen("c") is None


def test_a_fenced_broker_and_one_without_the_listener_are_not_offered(setup: Setup) -> None:
    assert setup.chosen("c", listener="OTHER") is None
    setup.brokers[NodeId(4)] = broker(4, fenced=True)
    assert setup.chosen("c") is None


def test_a_member_of_the_isr_that_this_leader_has_not_heard_of_is_not_offered(setup: Setup) -> None:
    setup.leader.followers[NodeId(4)] = NEVER_FETCHED
    assert setup.chosen("c", offset=0) is None
