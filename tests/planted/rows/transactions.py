"""Bugs of transactions (KIP-98, KIP-890): coordinators, markers, and what read_committed consumers see."""

from tests.planted.changes import NEVER, SKIP, Gives, Instead, Swap, Without
from tests.planted.planted import Change, Planted, table

WORKLOAD = "transactions"

TRANSACTIONS: dict[str, Planted] = table(
    Planted(
        name="stable-is-the-high-watermark",
        how=Gives("high_watermark"),
        trap="KIP-98",
        harm="read_committed consumers read what is not decided",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="uncommitted-marker-decides",
        how=Gives("[high_watermark]"),
        trap="T43, KIP-98",
        harm="a marker that a truncation may take counts for readers",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="cut-marker-still-ends",
        how=SKIP,
        trap="lost markers on truncation",
        harm="after a restart a cut that takes a marker away does not open its transaction again",
        seeds=(7, 7),
        workload=WORKLOAD,
    ),
    Planted(
        name="decisions-die-with-their-coordinator",
        how=Instead("fresh = []"),
        trap="KIP-98",
        harm="a new coordinator does not write the markers that are missing",
        seeds=(2, 2),
        workload=WORKLOAD,
    ),
    Planted(
        name="aborted-are-not-named",
        how=Gives("()"),
        trap="KIP-98",
        harm="consumers deliver what was aborted",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="zombie-adds-partitions",
        how=Gives("producer[0] != current.client[0]"),
        trap="KIP-98",
        harm="a producer that was fenced writes into a transaction of its successor's, or begins one",
        seeds=(4, 4),
        workload=WORKLOAD,
    ),
    Planted(
        name="zombie-ends-transaction",
        how=Gives("named[0] != current.client[0]"),
        trap="KIP-98",
        harm="a producer that was fenced commits its successor's transaction before it is whole",
        seeds=(10, 10),
        workload=WORKLOAD,
    ),
    Planted(
        name="marker-for-a-leader-that-moved",
        how=Gives("(*..., ErrorCode.NOT_LEADER_OR_FOLLOWER)"),
        trap="hanging transactions",
        harm="a partition whose leader moves never gets its marker",
        seeds=(5, 5),
        plan="marker-for-a-leader-that-moved.json",
    ),
    Planted(
        name="nothing-times-out",
        how=NEVER,
        trap="KIP-98",
        harm="the transaction of a producer that is gone is open for ever",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="nothing-is-verified",
        how=NEVER,
        trap="KIP-890",
        harm="a late batch begins a transaction that nobody ends",
        seeds=(1, 1),
        workload=WORKLOAD,
        also=Change("transaction-begins-where-it-may", NEVER),
    ),
    Planted(
        name="deposed-coordinator-writes-on",
        how=Instead("hosted.fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER, now)\n..."),
        trap="one writer for each leader epoch",
        harm="who hears that a leadership is over appends in it",
        seeds=(10, 10),
        workload=WORKLOAD,
    ),
    Planted(
        name="epoch-stays-at-the-end",
        guard="each-end-begins-an-epoch",
        how=Without("BUMPS_EPOCHS"),
        trap="KIP-890",
        harm="what is late belongs to the next transaction",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="aborts-do-not-fence",
        how=Swap("True", "False"),
        trap="KIP-98",
        harm="a producer whose transaction was aborted by its timeout goes on in the next one",
        seeds=(1, 1),
        workload=WORKLOAD,
        also=Change("each-end-begins-an-epoch", Without("BUMPS_EPOCHS")),
    ),
    Planted(
        name="answered-before-it-is-decided",
        how=Instead(
            "if following.state in (2, 3) and not setattr(entry, 'current', following):\n"
            "    return then(ErrorCode.NONE, now)\n"
            "..."
        ),
        trap="KIP-98",
        harm="a commit is acknowledged, and markers are written, without a record of the decision",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
)
