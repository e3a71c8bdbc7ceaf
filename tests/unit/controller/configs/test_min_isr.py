"""T1: min ISR is one value for controller and leaders, and it is in the metadata log."""

from random import Random

from tests.unit.controller.cluster import Cluster
from tests.unit.controller.configs.test_configs import DELETE, ELR_ON, SET, alter, broker, topic

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.controller.basis import ControllerConfig
from strandline.controller.controller import Controller
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.image import Image
from strandline.metadata.records import ConfigRecord

KEY = "min.insync.replicas"


def take_over(cluster: Cluster, static: dict[str, ConfigValue]) -> None:
    """A controller with another file goes on from what is in the log."""
    image = Image()
    image.apply_all(cluster.log.records)
    epoch = cluster.controller.epoch + 1
    cluster.controller = Controller(NodeId(101), ControllerConfig(), static, Random(2), cluster.log)
    cluster.take(cluster.controller.activate(image, epoch, cluster.now))


def min_isr(cluster: Cluster) -> int:
    """As a broker resolves it that has nothing but the log."""
    image = Image()
    image.apply_all(cluster.log.records)
    return image.min_isr(image.topics[cluster.at("t").topic_id])


def ready(static: dict[str, ConfigValue], *, elr: bool = True) -> Cluster:
    cluster = Cluster(brokers=3, static=static, elr=elr)
    cluster.create("t", (1, 2, 3))
    return cluster


def test_the_first_controller_writes_what_its_file_says_and_the_next_ones_file_says_nothing() -> None:
    cluster = ready({KEY: 2})
    assert min_isr(cluster) == 2
    take_over(cluster, {KEY: 3})
    assert min_isr(cluster) == 2
    assert len([record for record in cluster.log.records if isinstance(record, ConfigRecord)]) == 1


def test_without_a_file_the_default_is_written_so_that_a_later_file_changes_nothing() -> None:
    cluster = ready({})
    take_over(cluster, {KEY: 3})
    assert min_isr(cluster) == 1


def test_the_controller_decides_by_the_log_and_not_by_its_own_file() -> None:
    cluster = ready({KEY: 2})
    cluster.controller.write([ELR_ON], cluster.now)
    take_over(cluster, {KEY: 1})
    assert cluster.alter("t", (1,)).error_code == ErrorCode.NONE
    assert cluster.partition("t").elr  # by a min ISR of 1 nobody would be


def test_without_elr_what_is_deleted_becomes_what_the_controllers_file_says_and_stays_state() -> None:
    cluster = ready({KEY: 2}, elr=False)
    alter(cluster, broker((KEY, SET, "3")))
    assert min_isr(cluster) == 3
    assert alter(cluster, broker((KEY, DELETE, None)))[0].error_code == ErrorCode.NONE
    assert min_isr(cluster) == 2
    alter(cluster, topic((KEY, SET, "1")))
    alter(cluster, topic((KEY, DELETE, None)))
    assert min_isr(cluster) == 2


def test_t1_a_single_broker_never_has_a_min_isr_of_its_own() -> None:
    """With ELR off too."""
    cluster = ready({KEY: 2})
    for operation, value in ((SET, "1"), (DELETE, None)):
        alter(cluster, broker((KEY, operation, value), name="1"))
        assert list(cluster.image.configs) == [(4, "")]


def test_a_cluster_from_before_gets_its_min_isr_as_if_somebody_had_set_it() -> None:
    """Who was eligible by no value is not so by the new one, and leaders that have not heard of it are refused (L7)."""
    cluster = ready({KEY: 1})
    cluster.controller.write([ELR_ON], cluster.now)
    cluster.controller.write([ConfigRecord(resource_type=4, resource_name="", name=KEY, value=None)], cluster.now)
    before = cluster.proposal("t", (1,))
    take_over(cluster, {KEY: 2})
    assert min_isr(cluster) == 2
    (answer,) = cluster.ask(before, version=3).topics[0].partitions
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
