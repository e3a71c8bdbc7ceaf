"""An election by hand takes its time, and nothing else waits for it."""

from typing import Any

from tests.sim.play import SETTINGS, Play

from strandline.base.errors import ErrorCode
from strandline.sim.clients.admin import Admin
from strandline.sim.clients.client import Life, Request
from strandline.sim.machine import Machine
from strandline.sim.options import Options
from strandline.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.elect_leaders import LONGEST_LOG_BALANCED, ElectLeadersRequest, TopicPartitions

WAIT_MS = 20_000  # twice as long as a session


class Operator(Admin):
    def create_on(self, name: str, node: int) -> Life:
        row = CreatableReplicaAssignment(partition_index=0, broker_ids=(node,))
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=(row,))
        yield from self.ask(f"creates {name}", CreateTopicsRequest(topics=(topic,)), 7)

    def elect_by(self, machine: Machine, topic: str, told: list[Any]) -> Life:
        row = TopicPartitions(topic=topic, partitions=(0,))
        request = ElectLeadersRequest(election_type=LONGEST_LOG_BALANCED, topic_partitions=(row,), timeout_ms=WAIT_MS)
        told.append((yield Request(machine.where["PLAINTEXT"], request, 3, WAIT_MS + 3000)))


def test_heartbeats_do_not_wait_behind_an_election_that_waits_for_replicas() -> None:
    play = Play(1, options=Options(settings=SETTINGS, elr=True))
    operator = Operator(play.scene, "operator")
    play.scene.enter(operator)
    controller = play.world.controller()
    asked, gone = (machine for machine in play.machines if machine is not controller)
    operator.errands.append(operator.create_on("lone", gone.node_id))
    play.until("it is there", lambda: play.world.laws.metadata.image.topic_named("lone"))
    gone.kill()
    play.until("nobody leads", lambda: play.world.laws.metadata.image.topic_named("lone").partitions[0].leader < 0)  # type: ignore[union-attr]
    told: list[Any] = []
    operator.errands.append(operator.elect_by(asked, "lone", told))
    play.run(500)
    assert controller is not None
    before = asked.outbound[(controller.where["CONTROLLER"], "controller")]
    play.run(WAIT_MS - 1000)
    assert told == []
    assert asked.outbound[(controller.where["CONTROLLER"], "controller")] is before, "it broke, and began anew"
    play.run(2000)
    (row,) = told[0].replica_election_results[0].partition_result
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT, "so the controller says, not who passes it on"
