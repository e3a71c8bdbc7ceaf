"""What a topic wants done where neither the ISR nor the ELR has anyone who may lead (KIP-966, Unclean recovery).

`unclean.recovery.strategy` says it, and the older `unclean.leader.election.enable`, which is deprecated: true means
Aggressive, false Balanced. The most specific level at which one of them is set decides: the topic, all brokers, the
node's file. On one level the strategy goes before the older key.
"""

from collections.abc import Mapping
from enum import Enum

from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.configs.topic_configs import TOPIC_CONFIGS, UNCLEAN_RECOVERY_STRATEGIES
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE, Image

STRATEGY_KEY = "unclean.recovery.strategy"
UNCLEAN_KEY = "unclean.leader.election.enable"
STRATEGY_KEYS = (STRATEGY_KEY, UNCLEAN_KEY)


class Strategy(Enum):
    NONE = "None"  # nothing: somebody must decide
    BALANCED = "Balanced"  # a leader once all that may have the most are there
    AGGRESSIVE = "Aggressive"  # a leader soon, whatever is lost


assert {strategy.value for strategy in Strategy} == set(UNCLEAN_RECOVERY_STRATEGIES), "what may be set has its meaning"


def strategy_of(image: Image, topic: str, static: Mapping[str, ConfigValue]) -> Strategy:
    """`static`: the configuration of the controller that decides, as its file has it."""
    for resource in ((TOPIC_RESOURCE, topic), (BROKER_RESOURCE, CLUSTER_DEFAULT)):
        texts = image.configs.get(resource, {})
        found = strategy_in({key: TOPIC_CONFIGS[key].parse(texts[key]) for key in STRATEGY_KEYS if key in texts})
        if found is not None:
            return found
    return strategy_in(static) or Strategy.BALANCED


def strategy_in(values: Mapping[str, ConfigValue]) -> Strategy | None:
    """What one level says, or None."""
    strategy, is_unclean_allowed = (values.get(key) for key in STRATEGY_KEYS)
    if strategy is not None:
        return Strategy(strategy)
    if is_unclean_allowed is None:
        return None
    return Strategy.AGGRESSIVE if is_unclean_allowed else Strategy.BALANCED
