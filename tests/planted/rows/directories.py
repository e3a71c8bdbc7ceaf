"""Planted bugs around log directories that fail while their broker lives on."""

from tests.planted.changes import ALWAYS, NEVER, SKIP, Gives, Instead
from tests.planted.planted import Change, Planted, table

DIRECTORIES: dict[str, Planted] = table(
    Planted(
        name="lost-directory-keeps-its-leaders",
        how=Gives("(record,)"),
        trap="KIP-858",
        harm="partitions stay with a leader that cannot serve them, for as long as its broker lives",
        plan="lost-directory-keeps-its-leaders.json",
        seeds=(1, 1),
    ),
    Planted(
        name="elected-in-a-lost-directory",
        how=ALWAYS,
        trap="T8, KIP-858",
        harm="a replica leads whose log is on a disk that is not there",
        plan="elected-in-a-lost-directory.json",
        seeds=(4, 4),
    ),
    Planted(
        name="lost-directory-untold",
        how=SKIP,
        trap="KIP-858",
        harm="the controller goes on taking the replicas of a failed directory for live ones",
        plan="lost-directory-untold.json",
        seeds=(1, 1),
    ),
    Planted(
        name="empty-log-in-place-of-an-offline-one",
        how=NEVER,
        trap="KIP-858",
        harm="the last in-sync replica comes back empty, leads, and all that was committed is lost",
        plan="empty-log-in-place-of-an-offline-one.json",
        seeds=(20, 20),
        also=Change("empty-log-where-its-place-is-unknown", NEVER),
    ),
    Planted(
        name="failed-flush-taken-for-done",
        how=Instead("self.flushed(token)\nreturn"),
        trap="fsyncgate",
        harm="a recovery point vouches for records that the disk never got",
        plan="failed-flush-taken-for-done.json",
        seeds=(4, 4),
    ),
    Planted(
        name="future-log-not-cut",
        how=SKIP,
        trap="KIP-101, KIP-113",
        harm="a replica that moves keeps records that its leader never had",
        plan="future-log-not-cut.json",
        seeds=(10, 10),
    ),
)
