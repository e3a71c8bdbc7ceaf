"""Bugs that only a stranger finds: nobody in the cluster sends such messages."""

from tests.planted.planted import Planted, table

STRANGERS = table(
    Planted(
        name="any-epoch-is-believed",
        module="strandline.quorum.state",
        old="        if epoch - self.epoch <= self.allowance.steps(now):",
        new="        if True:",
        trap="KIP-996",
        harm="one message uses up all epochs of the metadata quorum",
        seeds=(101, 101),
    ),
    Planted(
        name="other-clusters-voters-count",
        module="strandline.quorum.voting",
        old="    if request.cluster_id != quorum.cluster_id:",
        new="    if False:",
        trap="KIP-595",
        harm="a voter of another cluster moves ours to its epochs",
        seeds=(101, 101),
    ),
    Planted(
        name="numbers-of-any-length",
        module="strandline.metadata.configs.config_key",
        old="    if len(digits) > LONGEST_NUMBER:",
        new="    if not digits:",
        trap="strangers' texts",
        harm="a configuration value with five thousand digits ends the controller",
        seeds=(101, 106),
    ),
)
