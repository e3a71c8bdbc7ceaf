"""Bugs that only a stranger finds: nobody in the cluster sends such messages."""

from tests.planted.changes import ALWAYS, NEVER
from tests.planted.planted import Planted, table

STRANGERS = table(
    Planted(
        name="any-epoch-is-believed",
        how=ALWAYS,
        trap="KIP-996",
        harm="one message uses up all epochs of the metadata quorum",
        seeds=(101, 101),
    ),
    Planted(
        name="other-clusters-voters-count",
        how=NEVER,
        trap="KIP-595",
        harm="a voter of another cluster moves ours to its epochs",
        seeds=(101, 101),
    ),
    Planted(
        name="numbers-of-any-length",
        how=NEVER,
        trap="strangers' texts",
        harm="a configuration value with five thousand digits ends the controller",
        seeds=(101, 106),
    ),
)
