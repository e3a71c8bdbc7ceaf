"""A leader's log, and whoever stops it: the steps that property tests of logs share."""

from random import Random

from hypothesis import strategies as st
from tests.unit.log.logs import open_log, small

from strandline.sim.world.disk import SimDisk

STOPS = (
    st.tuples(st.just("sync"), st.just(0), st.just(0)),
    st.tuples(st.just("roll"), st.just(0), st.just(0)),
    st.tuples(st.just("truncate"), st.integers(0, 12), st.just(0)),
    st.tuples(st.just("stop"), st.just(0), st.just(0)),
    st.tuples(st.just("kill"), st.just(0), st.just(0)),
    st.tuples(st.just("power"), st.integers(0, 1 << 20), st.just(0)),
)


class StoppedLog:
    """`synced` is what the checkpoint on disk says."""

    def __init__(self) -> None:
        self.disk = SimDisk()
        self.synced = 0
        self.leader_epoch = 0
        self.epochs = {1: 0, 2: 0, 3: 0}  # of producers
        self.log = open_log(self.disk, small())
        self.disk.sync(["/d", *self.log.unsynced()])

    def stop(self, what: str, number: int) -> None:
        """One of STOPS."""
        log = self.log
        match what:
            case "sync":
                self.disk.sync(log.unsynced())
                log.mark_synced(log.log_end_offset)
                self.synced = log.recovery_point
            case "roll":
                if log.active.size:
                    log.roll(log.log_end_offset)
            case "truncate":
                log.truncate_to(max(0, log.log_end_offset - number))
                self.synced = min(self.synced, log.recovery_point)
                self.leader_epoch += 1  # what comes now has another leader's epoch
            case "stop":
                self.disk.sync(log.write_all())
                log.mark_synced(log.log_end_offset)
                self.synced = log.log_end_offset
                log.close()
                self.log = open_log(self.disk, small())
            case "kill" | "power":
                if what == "power":
                    self.disk.crash(Random(number))
                else:
                    self.disk.abandon()
                self.log = open_log(self.disk, small(), clean=False, recovery_point=self.synced)
                self.synced = min(self.synced, self.log.recovery_point)
                self.leader_epoch += 1
            case _:
                raise AssertionError(what)
