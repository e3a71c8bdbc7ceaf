"""How a driver commits what its tasks have prepared, or aborts it.

The order is the proof (docs/exactly-once.md):
  1. enter the journal, so that no other driver decides meanwhile without being noticed
  2. read it: a version that is decided is finished, and what was written for it again is aborted
  3. take over each transaction: after that only this process can end it, and the coordinator says that it is open
  4. record the decision
  5. commit each transaction, then record that this is done
Before the fourth step nothing counts, after it everything does. Whoever comes later finds in the journal which of the
two it is.
"""

import time
from collections.abc import Sequence
from contextlib import suppress

from strandline.client.cluster import Cluster
from strandline.client.two_phase import Begun, abort_by_id, take_over
from strandline_spark.errors import StrandlineError
from strandline_spark.sink.exactly_once.finishing import DECIDED_TIMEOUT_MS, finish
from strandline_spark.sink.exactly_once.journal import Decided, Decision, Fenced, Journal
from strandline_spark.sink.exactly_once.settling import sweep

ENTRIES_MAX = 20  # drivers that fence each other do not go on for ever


class NotOpen(StrandlineError):
    """What a task has prepared is open no longer: nothing of the version is committed."""


class Write:
    """One version of a write, as this run has prepared it."""

    def __init__(self, cluster: Cluster, name: str, run: str, version: int, prepared: Sequence[Begun] = ()) -> None:
        self.cluster = cluster
        self.name = name
        self.run = run
        self.version = version
        self.prepared = prepared

    def commit(self) -> bool:
        """Commit all that is prepared, unless this version or a later one is decided: then abort it. Returns whether
        it was this run that decided. Raises `StrandlineError`."""
        journal = Journal(self.cluster, self.name)
        for _ in range(ENTRIES_MAX):
            try:
                last = self.entered(journal)
                if last is not None and self.version <= last.version:
                    return self.abandoned(last)
                decision = Decision(self.name, self.version, self.run, now_ms(), self.taken_over())
                journal.write(decision)
            except Fenced:
                continue
            with suppress(Fenced):  # another one has entered: it finds everything committed
                finish(self.cluster, journal, decision)
            sweep(self.cluster, self.name, self.run)
            return True
        raise self.crowded()

    def abort(self) -> None:
        """Spark gives the version up: abort all that this run has written for it. Spark also does that if `commit`
        failed, which may have been after the decision: then it is committed. Raises `StrandlineError`."""
        journal = Journal(self.cluster, self.name)
        for _ in range(ENTRIES_MAX):
            try:
                self.abandoned(self.entered(journal))
                return
            except Fenced:
                continue
        raise self.crowded()

    def entered(self, journal: Journal) -> Decision | None:
        """The last decision, all of which is committed. Nobody else decides before this one has been fenced."""
        journal.enter()
        last = journal.read()
        return last if last is None or last.is_done else finish(self.cluster, journal, last)

    def abandoned(self, last: Decision | None) -> bool:
        """All that is decided is committed, so what is open of this run never will be. Was it this run that decided?"""
        abort_by_id(self.cluster, [one.transactional_id for one in self.prepared], DECIDED_TIMEOUT_MS)
        sweep(self.cluster, self.name, self.run)
        return last is not None and last.run == self.run and last.version == self.version

    def taken_over(self) -> tuple[Decided, ...]:
        """Raises NotOpen."""
        taken = take_over(self.cluster, [one.transactional_id for one in self.prepared], DECIDED_TIMEOUT_MS)
        decided = []
        for one in self.prepared:
            found = taken[one.transactional_id]
            if found.begun != one:
                raise NotOpen(
                    f"version {self.version} of {self.name} is not committed: transaction {one.transactional_id} is"
                    " not open any more",
                    "it was aborted after kafka.transaction.timeout.ms, by `strandline pipeline settle`, or by another"
                    " driver with the same name. Run the query again; if its tasks take longer, raise the timeout",
                )
            decided.append(Decided(*one, *found.client.producer))
        return tuple(decided)

    def crowded(self) -> StrandlineError:
        return StrandlineError(
            f"{ENTRIES_MAX} times another driver entered while version {self.version} of {self.name} was being decided",
            "stop the other one: two drivers run with the same checkpoint, or with the same transactionName",
        )


def now_ms() -> int:
    return time.time_ns() // 1_000_000
