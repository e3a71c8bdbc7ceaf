"""All replicas lose power at once. Who comes back first leaves the ISR of two that are held to be in sync, and is in no
LastKnownElr; it may have the most data all the same.
"""

from tests.unit.controller.elections.recovered import TIMEOUT, Recovered

from strandline.base.ids import NOBODY


def all_back() -> Recovered:
    """1 has registered before it was known that 2 and 3 had died too. They are active already; 1 is not."""
    cluster = Recovered()
    for node in (1, 2, 3):
        cluster.disconnect(cluster.connection(node))
        assert cluster.register(node).error_code == 0
    assert cluster.partition("t").last_known_elr == (2, 3)
    for node in (2, 3):
        cluster.beat(node)
    for node in (2, 3):
        cluster.say(node, (0, 0))
    return cluster


def test_a_recovery_waits_until_a_registered_broker_can_answer() -> None:
    cluster = all_back()
    assert cluster.leader == NOBODY
    cluster.beat(1)
    cluster.say(1, (0, 50))
    assert cluster.leader == 1


def test_but_not_if_it_is_heard_of_no_more() -> None:
    cluster = all_back()
    for _ in range(8):
        cluster.wait(1000)
        cluster.beat_all()
    assert cluster.leader == NOBODY
    cluster.wait(1000)
    assert cluster.leader == 2, "its session is over"


def test_nor_longer_than_the_timeout() -> None:
    cluster = all_back()
    while cluster.leader == NOBODY and cluster.now < 1_000_000 + TIMEOUT + 1000:
        cluster.wait(1000)
        cluster.beat_all()
        cluster.beat(1, offset=0)  # it still reads the metadata log
    assert cluster.leader == 2
    assert cluster.now >= 1_000_000 + TIMEOUT
