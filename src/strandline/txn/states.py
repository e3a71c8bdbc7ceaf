"""The states of a transactional id, and every transition between them (KIP-98, KIP-360, KIP-890, KIP-939).

    EMPTY             a producer is known, and no transaction was begun since
    ONGOING           partitions were added
    PREPARE_COMMIT    decided: markers are being written
    PREPARE_ABORT
    COMPLETE_COMMIT   every partition has its marker
    COMPLETE_ABORT
    DEAD              forgotten; this is never written

A transaction prepared by somebody else (two-phase commit, KIP-939) is ONGOING and has no timeout. Kafka's
PrepareEpochFence is no state here: a producer is fenced by the record that aborts its transaction.
"""

from enum import IntEnum


class State(IntEnum):
    """By the numbers in Kafka's records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6

    @property
    def named(self) -> str:
        """As Kafka's tools print it: PrepareCommit."""
        return self.name.title().replace("_", "")


DECIDED = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
COMPLETE = (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
IDLE = (State.EMPTY, *COMPLETE)

TRANSITIONS: dict[State, dict[State, str]] = {
    State.EMPTY: {
        State.EMPTY: "InitProducerId",
        State.ONGOING: "partitions are added",
        State.PREPARE_ABORT: "EndTxn of nothing (version 2)",
        State.DEAD: "the id expires",
    },
    State.ONGOING: {
        State.ONGOING: "partitions are added, or a prepared transaction gets another client",
        State.PREPARE_COMMIT: "EndTxn",
        State.PREPARE_ABORT: "EndTxn, the timeout, or another producer",
    },
    State.PREPARE_COMMIT: {State.COMPLETE_COMMIT: "all markers are written"},
    State.PREPARE_ABORT: {State.COMPLETE_ABORT: "all markers are written"},
    State.COMPLETE_COMMIT: {
        State.EMPTY: "InitProducerId",
        State.ONGOING: "partitions are added",
        State.PREPARE_ABORT: "EndTxn of nothing (version 2)",
        State.DEAD: "the id expires",
    },
    State.COMPLETE_ABORT: {
        State.EMPTY: "InitProducerId",
        State.ONGOING: "partitions are added",
        State.PREPARE_ABORT: "EndTxn of nothing (version 2)",
        State.DEAD: "the id expires",
    },
    State.DEAD: {},
}
