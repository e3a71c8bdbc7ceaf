"""What a CLIENT_METRICS resource may be set to (KIP-714): which clients push which metrics, and how often.

Its name is that of a subscription. A client is asked for the metrics of all subscriptions that match it. Error codes
are Kafka's: INVALID_REQUEST for an unknown key and for an interval out of range, INVALID_CONFIG for the rest.

Invariant: `matches_in` reads every value of `match` for which `why_invalid_subscription` says None.
"""

from strandline.base.errors import ErrorCode
from strandline.base.pattern import Invalid, Pattern
from strandline.metadata.configs.config_key import INT, LIST, ConfigKey

METRICS, INTERVAL, MATCH = "metrics", "interval.ms", "match"
DEFAULT_INTERVAL_MS = 5 * 60 * 1000
INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 60 * 60 * 1000
ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)

CLIENT_METRICS_CONFIGS: dict[str, ConfigKey] = {
    row.name: row
    for row in (
        ConfigKey(METRICS, LIST, ()),
        ConfigKey(INTERVAL, INT, DEFAULT_INTERVAL_MS),
        ConfigKey(MATCH, LIST, ()),
    )
}

# Attributes of a client, each with the pattern that all of its value must match.
Matches = tuple[tuple[str, str], ...]


def why_invalid_subscription(name: str, value: str) -> tuple[ErrorCode, str] | None:
    """Why may a subscription not have this value? None means it may."""
    key = CLIENT_METRICS_CONFIGS.get(name)
    if key is None:
        return ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}"
    problem = key.why_invalid(value)
    if problem is not None:
        return ErrorCode.INVALID_CONFIG, problem
    parsed = key.parse(value)
    if isinstance(parsed, int) and not INTERVAL_MS_MIN <= parsed <= INTERVAL_MS_MAX:
        why = f"Invalid value {parsed} for {name}, interval must be between 100 and 3600000 (1 hour)"
        return ErrorCode.INVALID_REQUEST, why
    if name == MATCH:
        assert isinstance(parsed, tuple)
        for entry in parsed:
            if match_in(entry) is None:
                return ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {entry}"
    return None


def match_in(entry: str) -> tuple[str, str] | None:
    """The attribute and the pattern of "client_id=app-.*"; None if it is not of this form."""
    name, equals, text = entry.rstrip("=").partition("=")
    name, text = name.strip(), text.strip()
    if not equals or "=" in text or name not in ATTRIBUTES:
        return None
    try:
        Pattern(text)
    except Invalid:
        return None
    return name, text


def matches_in(entries: tuple[str, ...]) -> Matches | None:
    """All that a client must match; of one attribute, the last pattern counts. None if an entry is invalid."""
    found: dict[str, str] = {}
    for entry in entries:
        match = match_in(entry)
        if match is None:
            return None
        found[match[0]] = match[1]
    return tuple(sorted(found.items()))
