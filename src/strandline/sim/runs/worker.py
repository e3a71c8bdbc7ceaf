"""A process that runs seeds: numbers come in, outcomes go out, one line each.

`python -m strandline.sim.runs.worker [MODULE:NAME [WORKLOAD [SECURED]]]`: what is named so is done first (see
`prepared`), runs have this workload alone, and are secured so (see `alone`). All seeds run in the same process, one
after another; nothing is carried over from one to the next. A number may be followed by the path of a written plan,
which then runs with that seed.
"""

import gc
import sys
import traceback
from pathlib import Path

import msgspec

from strandline.sim.runs.prepared import prepare


def work(wish: str, workload: str, how: str) -> None:
    prepare(wish)
    # Only now: what is imported may have a bug planted in it.
    from strandline.sim.runs.alone import chosen
    from strandline.sim.runs.plan import draw_plan, read_plan
    from strandline.sim.runs.run import RunResult, run_plan

    for line in sys.stdin:
        number, _, path = line.strip().partition(" ")
        seed = int(number)
        try:
            plan = read_plan(Path(path).read_bytes()) if path else draw_plan(seed)
            plan = chosen(msgspec.structs.replace(plan, seed=seed), workload, how)
            outcome = run_plan(plan)
        except Exception as error:
            # The simulator itself broke. That is one more failed seed; the others go on.
            why = f"the simulator crashed: {type(error).__name__}: {error}"
            outcome = RunResult(seed, why, traceback.format_exc(), "", 0, 0, 0, 0, ())
        gc.collect()  # what the run has left: it ran without the collector
        sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    work(*[*sys.argv[1:], "", "", ""][:3])
