"""Topics with a codec of their own while the cluster suffers: judged as all others are.

No seed draws them, since batches of other sizes would change all that the seeds kept for their bugs meet.
"""

import pytest
from msgspec import structs

from strandline.sim.runs.plan import draw_plan
from strandline.sim.runs.run import run_plan


@pytest.mark.parametrize(
    ("seed", "name", "clock"),
    [(1, "gzip", "CreateTime"), (3, "lz4", "LogAppendTime"), (4, "snappy", "CreateTime"), (8, "zstd", "LogAppendTime")],
)
def test_nothing_is_lost_or_doubled_where_leaders_recompress(seed: int, name: str, clock: str) -> None:
    plan = draw_plan(seed)
    settings = plan.options.settings | {"compression.type": name, "log.message.timestamp.type": clock}
    options = structs.replace(plan.options, settings=settings)
    outcome = run_plan(structs.replace(plan, options=options))
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])
