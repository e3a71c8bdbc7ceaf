"""Bugs that take away who may do what: those of the authorizer's gate, and of what only nodes may ask."""

from tests.planted.changes import ALWAYS, NEVER, SKIP, Swap
from tests.planted.planted import Planted, table

PERMITTING = table(
    Planted(
        name="any-client-is-a-replica",
        how=NEVER,
        trap="KIP-101",
        harm="a client's Fetch moves the high watermark, and acks=all is answered with one copy",
        seeds=(1, 1),
        secured="intruder",
    ),
    Planted(
        name="strangers-are-believed",
        how=NEVER,
        trap="KIP-500",
        harm="whoever reaches the controllers' listener votes, registers brokers, fences them and changes ISRs",
        seeds=(1, 1),
        secured="intruder",
    ),
    Planted(
        name="anybody-adds-partitions-for-brokers",
        how=NEVER,
        trap="KIP-890",
        harm="a client puts partitions into a transaction that is not its own",
        seeds=(1, 1),
        workload="transactions",
        secured="intruder",
    ),
    Planted(
        name="split-goes-through-whole",
        how=Swap("verdict.received", "received"),
        trap="KIP-11",
        harm="what was not permitted is done nevertheless, if something else in the request was",
        seeds=(1, 1),
        secured="authorizer",
    ),
    Planted(
        name="session-outlives-its-rights",
        how=Swap("is rights", "is not None"),
        trap="KIP-227",
        harm="a consumer with a fetch session reads on after its right was taken away",
        seeds=(3, 3),
        secured="authorizer",
    ),
    Planted(
        name="all-topics-are-named",
        how=ALWAYS,
        trap="KIP-11",
        harm="Metadata names topics to somebody who may not describe them",
        seeds=(1, 1),
        secured="both",
    ),
    Planted(
        name="decision-outlives-the-acls",
        how=SKIP,
        trap="KIP-11",
        harm="what was permitted once stays permitted when its ACL is gone",
        seeds=(1, 1),
        secured="authorizer",
    ),
    Planted(
        name="denial-does-not-win",
        how=NEVER,
        trap="KIP-11",
        harm="somebody whom one ACL denies is permitted by another one",
        seeds=(1, 1),
        secured="both",
    ),
)
