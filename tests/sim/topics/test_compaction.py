"""Compacted topics while the cluster suffers: what is gone may be gone, and nothing else is."""

import pytest
from tests.sim.play import SETTINGS, Play

from strandline.base.ids import TopicPartition
from strandline.sim.clients.keyed import Keyed
from strandline.sim.laws.logs.compacted import stored
from strandline.sim.runs.plan import draw_plan, with_compaction
from strandline.sim.runs.run import run_plan
from strandline.sim.world.options import Options

pytestmark = pytest.mark.long

AT = TopicPartition("compacted", 0)
EAGER = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.roll.ms": "300",
    "log.retention.check.interval.ms": "200",
    "log.flush.offset.checkpoint.interval.ms": "300",
}


def test_every_replica_keeps_few_records_of_few_keys() -> None:
    play = Play(options=Options(settings=SETTINGS | EAGER))
    play.admin.errands.append(play.admin.create("compacted", cleanup_policy="compact"))
    writer = Keyed(play.scene, "pk", AT)
    play.enter(writer)
    play.run(6000)
    assert writer.acked > 100
    for machine in play.machines:
        assert machine.node is not None
        assert machine.node.broker is not None
        hosted = machine.node.broker.replicas.host.partitions.named(*AT)
        assert hosted is not None
        end = hosted.log.cleaned_to
        assert end is not None
        assert end > 100
        kept = sum(header.record_count for header, _ in stored(hosted.log) if header.next_offset <= end)
        assert kept < 50
    play.end()


@pytest.mark.parametrize("seed", [3, 5, 9, 14])
def test_a_drawn_plan_with_a_compacted_topic_breaks_no_law(seed: int) -> None:
    outcome = run_plan(with_compaction(draw_plan(seed)))
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])
