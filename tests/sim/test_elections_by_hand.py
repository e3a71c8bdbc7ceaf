"""Elections by hand on nodes: they take their time, and nothing else waits for them; and who wanted one is known."""

from typing import Any

import pytest
from tests.sim.play import SETTINGS, Play

from strandline.base.errors import ErrorCode
from strandline.metadata.image import Partition
from strandline.sim.clients.admin import Admin
from strandline.sim.clients.client import Life, Request
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.wire.messages.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from strandline.wire.messages.topics.elect_leaders import (
    DESIGNATION,
    LONGEST_LOG_BALANCED,
    UNCLEAN,
    ElectLeadersRequest,
    TopicPartitions,
)

E = ErrorCode
WAIT_MS = 20_000  # twice as long as a session


class Operator(Admin):
    def create_on(self, node: int) -> Life:
        row = CreatableReplicaAssignment(partition_index=0, broker_ids=(node,))
        topic = CreatableTopic(name="lone", num_partitions=-1, replication_factor=-1, assignments=(row,))
        yield from self.ask("creates lone", CreateTopicsRequest(topics=(topic,)), 7)

    def elect(self, kind: int, version: int, by: Machine, answer: list[Any], node: int = -1) -> Life:
        row = TopicPartitions(topic="lone", partitions=(0,), designated_leaders=(node,) if node >= 0 else None)
        request = ElectLeadersRequest(election_type=kind, topic_partitions=(row,), timeout_ms=WAIT_MS)
        answer.append((yield Request(by.where["PLAINTEXT"], request, version, WAIT_MS + 3000)))


class Lone(Play):
    """A topic has one replica, and who has it is dead. `asked` is neither that one nor the controller."""

    def __init__(self) -> None:
        # Nobody but an operator elects uncleanly; the laws of the simulator go by the older key.
        settings = SETTINGS | {"unclean.recovery.strategy": "None", "unclean.leader.election.enable": "true"}
        super().__init__(options=Options(settings=settings, elr=True))
        self.operator = Operator(self.scene, "operator")
        self.scene.enter(self.operator)
        controller = self.world.controller()
        assert controller is not None
        self.controller = controller
        self.asked, self.gone = (machine for machine in self.machines if machine is not controller)
        self.operator.errands.append(self.operator.create_on(self.gone.node_id))
        self.until("lone is there", lambda: self.world.laws.metadata.image.topic_named("lone"))
        self.gone.power_cut()
        self.until("nobody leads lone", lambda: self.lone.leader < 0)

    @property
    def lone(self) -> Partition:
        topic = self.world.laws.metadata.image.topic_named("lone")
        assert topic is not None
        return topic.partitions[0]


def outcome(answer: list[Any]) -> ErrorCode:
    return E(answer[0].replica_election_results[0].partition_result[0].error_code)


def test_heartbeats_do_not_wait_behind_an_election_that_waits_for_replicas() -> None:
    play = Lone()
    reported: list[Any] = []
    play.operator.errands.append(play.operator.elect(LONGEST_LOG_BALANCED, 3, play.asked, reported))
    play.run(500)
    channel = (play.controller.where["CONTROLLER"], "controller")
    before = play.asked.outbound[channel]
    play.run(WAIT_MS - 1000)
    assert reported == []
    assert play.asked.outbound[channel] is before, "it broke, and began anew"
    play.run(2000)
    assert outcome(reported) is E.REQUEST_TIMED_OUT, "so the controller says, not who passes it on"


@pytest.mark.parametrize(("kind", "version"), [(DESIGNATION, 3), (UNCLEAN, 2)], ids=["designation", "unclean"])
def test_the_client_of_an_election_that_may_lose_records_is_in_the_ledger(kind: int, version: int) -> None:
    play = Lone()
    play.gone.start()
    play.run(5000)
    assert play.lone.leader < 0
    reported: list[Any] = []
    node = play.gone.node_id if kind == DESIGNATION else -1
    play.operator.errands.append(play.operator.elect(kind, version, play.asked, reported, node))
    play.until("it is answered", lambda: reported)
    assert (outcome(reported), play.lone.leader) == (E.NONE, play.gone.node_id)
    assert "election, asked for by operator at " in play.lone.losses[-1].cause
