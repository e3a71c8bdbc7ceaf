"""The features that this program knows (KIP-584): which levels of each, on which others a level rests, and which levels
a new cluster begins with. A cluster that has a metadata.version keeps what it has until somebody changes it."""

from collections.abc import Mapping

from strandline.wire.messages.brokers.broker_registration import Feature

METADATA_VERSION = "metadata.version"
METADATA_LEVEL = 30  # 4.3-IV0
ELR_FEATURE = "eligible.leader.replicas.version"
TXN_FEATURE = "transaction.version"  # KIP-890: 1: flexible records; 2: each end of a transaction raises the epoch
GROUP_FEATURE = "group.version"  # KIP-848: 1: the consumer protocol

# What a cluster can be set to. Records are always written in their newest form, so metadata.version has one level.
SUPPORTED_FEATURES = {
    METADATA_VERSION: (METADATA_LEVEL, METADATA_LEVEL),
    ELR_FEATURE: (0, 1),
    TXN_FEATURE: (0, 2),
    GROUP_FEATURE: (0, 1),
}
# What a broker can live with: a log that another program began may say an earlier level, until somebody raises it.
READABLE_FEATURES = {**SUPPORTED_FEATURES, METADATA_VERSION: (7, METADATA_LEVEL)}
UNSUPPORTED = (0, 0)  # what of a feature somebody supports who does not know it
RESTS_ON = {(ELR_FEATURE, 1): {METADATA_VERSION: 23}}  # 4.0-IV1: records have fields for an ELR (T11)

# From which metadata.version on a new cluster begins with a level, as in Kafka: 4.1-IV0 for ELR, 4.0-IV2 for
# transactions, 4.0-IV0 for groups.
BEGINS_WITH = {ELR_FEATURE: (1, 26), TXN_FEATURE: (2, 24), GROUP_FEATURE: (1, 22)}

# Of metadata.version, which began with level 7; the names are Kafka's.
RELEASES = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1"),
    *("3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0"),
    *("4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
)
RELEASE_OF = dict(enumerate(RELEASES, 7))
assert max(RELEASE_OF) == METADATA_LEVEL
assert all(name in READABLE_FEATURES for name in SUPPORTED_FEATURES)


def ranges(features: Mapping[str, tuple[int, int]]) -> tuple[Feature, ...]:
    """What a broker says of itself when it registers."""
    assert all(low <= high for low, high in features.values())
    return tuple(
        Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in features.items()
    )


def initial_levels(named: Mapping[str, int], *, is_elr_enabled: bool = True) -> dict[str, int]:
    """What a new cluster begins with: what is named, and Kafka's defaults for the rest. `is_elr_enabled`: what
    eligible.leader.replicas.enabled says. `why_not_initial` has a say before anything is named."""
    assert all(why_not_initial(name, level) is None for name, level in named.items())
    levels = {METADATA_VERSION: METADATA_LEVEL}
    for name, (level, least) in BEGINS_WITH.items():
        begins = level if levels[METADATA_VERSION] >= least and (name != ELR_FEATURE or is_elr_enabled) else 0
        levels[name] = named.get(name, begins)
    return {name: level for name, level in levels.items() if level > 0}


def why_not_initial(name: str, level: int) -> str | None:
    """Why can no new cluster begin with this level of a feature?"""
    if name not in SUPPORTED_FEATURES:
        return f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(SUPPORTED_FEATURES))}"
    low, high = SUPPORTED_FEATURES[name]
    if not low <= level <= high:
        return f"Feature {name} cannot begin with level {level}: levels {low} to {high} are supported"
    return None
