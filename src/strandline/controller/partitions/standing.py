"""What a partition without a leader is waiting for (KIP-966, Leader election, and its delivery plan).

A pure function over what is known of one partition, for metrics and for people. It decides nothing: elections are
`controller.partition`'s, recoveries `controller.partitions.recovery`'s. Where somebody who is waited for is
there already, the next election finds them.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum

from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.image import Image, Partition
from strandline.metadata.strategy import Strategy, strategy_of


class Standing(Enum):
    LED = "somebody leads"
    MEMBER = "a member of the ISR"  # 1: without Eligible Leader Replicas the last one stays in it
    ELIGIBLE = "an eligible replica"  # 2 and 3.2: whichever of them is there first
    RECOVERY = "an unclean recovery"  # 3.1, 4.1 and 4.2: replicas are asked what they have
    LAST_ELIGIBLE = "all replicas that were eligible last"  # 4.2: a Balanced recovery begins when they are all unfenced
    LAST_LEADER = "the last leader"  # Delivery plan: Balanced, and no recovery is managed
    ANYBODY = "any replica"  # Delivery plan: Aggressive, and no recovery is managed
    OPERATOR = "an operator"  # 4.3, or whoever could be waited for is not known, or will not come

    @property
    def is_recovery(self) -> bool:
        """Is it counted as an unclean recovery? That which waits for members of LastKnownElr is, too."""
        return self in (Standing.RECOVERY, Standing.LAST_ELIGIBLE)


def standing_of(
    partition: Partition,
    strategy: Strategy,
    is_managed: bool,
    lives: Callable[[NodeId], bool],
    is_registered: Callable[[NodeId], bool],
) -> Standing:
    """What is waited for. `is_managed`: is the Unclean Recovery Manager on? `lives`: may this replica lead now?"""
    if partition.leader != NOBODY:
        return Standing.LED
    if strategy is Strategy.AGGRESSIVE:
        return Standing.RECOVERY if is_managed else Standing.ANYBODY
    for nodes, standing in ((partition.isr, Standing.MEMBER), (partition.elr, Standing.ELIGIBLE)):
        if nodes:
            return standing if any(map(is_registered, nodes)) else Standing.OPERATOR
    if strategy is Strategy.NONE:
        return Standing.OPERATOR
    if not is_managed:
        return Standing.LAST_LEADER if is_registered(partition.last_known_leader) else Standing.OPERATOR
    known = partition.last_known_elr
    if not known or not all(map(is_registered, known)):
        return Standing.OPERATOR
    return Standing.RECOVERY if all(map(lives, known)) else Standing.LAST_ELIGIBLE  # guard: all-who-were-eligible-live


def standing_in(image: Image, partition: Partition, strategy: Strategy, is_managed: bool) -> Standing:
    """The same, by what the metadata say of the brokers."""
    return standing_of(
        partition, strategy, is_managed, lambda node: image.lives(node, partition), image.brokers.__contains__
    )


def standings(
    image: Image, static: Mapping[str, ConfigValue], is_managed: bool
) -> Iterator[tuple[TopicIdPartition, Standing]]:
    """For all partitions without a leader. `static`: the configuration of the node, as its file has it."""
    for topic in image.topics.values():
        without = [(index, partition) for index, partition in topic.partitions.items() if partition.leader == NOBODY]
        if not without:
            continue
        strategy = strategy_of(image, topic.name, static)
        for index, partition in without:
            assert partition.leader == NOBODY
            yield TopicIdPartition(topic.topic_id, index), standing_in(image, partition, strategy, is_managed)
