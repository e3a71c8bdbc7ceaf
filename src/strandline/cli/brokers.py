"""All brokers of a cluster, those that are fenced too; the command ends if nobody tells."""

from strandline.cli.cluster import ask_any
from strandline.server.brokers import DESCRIBE, DESCRIBE_VERSION, BrokerAt, brokers_in


def brokers_of(bootstrap: str) -> dict[int, BrokerAt]:
    """All that are registered, by id."""
    return brokers_in(ask_any(bootstrap, DESCRIBE, DESCRIBE_VERSION))
