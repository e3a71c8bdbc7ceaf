"""Bugs of what is served, and of how fast: reading from followers (KIP-392), replication quotas (KIP-73)."""

from tests.planted.changes import Gives, Without
from tests.planted.planted import Planted, table

CONSUMING: dict[str, Planted] = table(
    Planted(
        name="follower-shows-its-tail",
        guard="visible",
        how=Gives("log.log_end_offset if is_follower or type(role) is not Leader else high_watermark"),
        trap="KIP-392, KIP-966 ConsistentRead",
        harm="consumers that read from a follower see records that a change of leader takes back",
        seeds=(1, 1),
        plan="follower-shows-its-tail.json",
    ),
    Planted(
        name="lagging-replica-offered",
        how=Without("isr"),
        trap="KIP-392",
        harm="consumers are sent to a replica that lags, and see nothing new for as long as it does",
        seeds=(1, 1),
        plan="lagging-replica-offered.json",
    ),
    Planted(
        name="quota-holds-back-who-is-in-sync",
        how=Without("isr"),
        trap="KIP-73",
        harm="a replication quota drives replicas out of the ISR, and keeps them out",
        seeds=(5, 5),
        plan="quota-holds-back-who-is-in-sync.json",
    ),
)
