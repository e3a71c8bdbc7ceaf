"""A process that runs the seeds of one block: a `Task` comes in, a `SeedRow` goes out per seed, one line each.

It imports everything once, and then forks for each seed. So no seed finds anything in its memory that another has left
there, one that takes too long is killed, and one that takes its process with it has a row like all others. When its
standard input closes, nobody wants the rows any more, and it ends at once.
"""

import gc
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import msgspec

from strandline.sim.runs.prepared import prepare
from strandline_spark.jobs.simulate.code import code_version
from strandline_spark.jobs.simulate.definition import AGAIN, Block, Campaign, Task, sampled
from strandline_spark.jobs.simulate.seed_row import DIED, TIMED_OUT, SeedRow, broken_off, row_of

OTHER_CODE = 3  # the exit status of a process that has other code than the campaign
CHUNK = 1 << 16


class SeedProcesses:
    def __init__(self, campaign: Campaign, block: Block, run_seed: Callable[[int], Any], outcome_type: Any) -> None:
        self.campaign = campaign
        self.run = block.run
        self.run_seed = run_seed
        self.outcome_type = outcome_type  # `sim.runs.run.RunResult`, which must not be imported before a bug is planted
        self.place = f"{socket.gethostname()}:{os.getpid()}"

    def row(self, seed: int) -> SeedRow | None:
        """None if standard input was closed: nobody wants the row any more."""
        began = time.monotonic()
        source, target = os.pipe()
        child = os.fork()
        if child == 0:
            self.run_in_child(seed, source, target)
        os.close(target)
        answer = read_answer(source, began + self.campaign.limit_s)
        os.close(source)
        if answer is None or answer is TOO_LATE:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        ms = int((time.monotonic() - began) * 1000)
        if answer is None:
            return None
        if answer is TOO_LATE:
            check = f"it took longer than {self.campaign.limit_s:g} s"
            return broken_off(seed, self.run, TIMED_OUT, check, ms, self.campaign, self.place)
        try:
            outcome = msgspec.json.decode(answer, type=self.outcome_type)
        except msgspec.DecodeError:
            check = f"its process died ({exit_cause(status)})"
            return broken_off(seed, self.run, DIED, check, ms, self.campaign, self.place)
        return row_of(outcome, self.run, ms, self.campaign, self.place)

    def run_in_child(self, seed: int, source: int, target: int) -> None:
        """In the new process, which does not return."""
        status = 1
        try:
            os.close(source)
            limit = int(self.campaign.limit_s) + 1  # if nobody is left to kill it
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            gc.disable()  # a run keeps nearly all that it makes; to look through it again and again finds nothing
            outcome = self.run_seed(seed)
            with os.fdopen(target, "wb") as out:
                out.write(msgspec.json.encode(outcome))
            status = 0
        finally:
            os._exit(status)


TOO_LATE = b"\0"


def read_answer(source: int, deadline: float) -> bytes | None:
    """The answer of a seed's process; TOO_LATE; None if standard input was closed meanwhile."""
    found = bytearray()
    while True:
        ready, _, _ = select.select([source, sys.stdin], [], [], max(0.0, deadline - time.monotonic()))
        if sys.stdin in ready:
            return None
        if not ready:
            return TOO_LATE
        chunk = os.read(source, CHUNK)
        if not chunk:
            return bytes(found)
        found += chunk


def exit_cause(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def chosen(campaign: Campaign, block: Block) -> list[int]:
    """The seeds of a block that count."""
    from strandline.sim.runs.plan import draw_plan

    seeds = list(range(block.first, block.last + 1))
    if campaign.eligible is not None:
        options = {seed: draw_plan(seed).options for seed in seeds}
        is_ruthless = campaign.eligible == "ruthless"
        seeds = [seed for seed in seeds if options[seed].elr and options[seed].is_ruthless == is_ruthless]
    return sampled(seeds, campaign.again_per_10000) if block.run == AGAIN else seeds


def main() -> int:
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=Task)
    # Rows have a way of their own: what anything prints here must not come between them.
    with os.fdopen(os.dup(1), "wb") as rows:
        os.dup2(2, 1)
        own = code_version()
        if own != task.campaign.code_version:
            print(f"{socket.gethostname()} has the code {own}", file=sys.stderr)
            return OTHER_CODE
        prepare(task.campaign.prepare)
        from strandline.sim.runs.run import RunResult, run_seed  # what is imported may have a bug planted in it
        from strandline.wire.frame import build_codecs

        def guarded(seed: int) -> Any:
            try:
                return run_seed(seed)
            except Exception as error:
                why = f"the simulator crashed: {type(error).__name__}: {error}"
                return RunResult(seed, why, traceback.format_exc(), "", 0, 0, 0, 0, ())

        processes = SeedProcesses(task.campaign, task.block, guarded, RunResult)
        seeds = chosen(task.campaign, task.block)
        build_codecs()  # once, and not in each seed's process
        gc.collect()
        gc.freeze()
        for seed in seeds:
            row = processes.row(seed)
            if row is None:
                break
            rows.write(msgspec.json.encode(row) + b"\n")
            rows.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
