"""Mutants of a node around its parts."""

from tests.mutants.mutant import Breaks, Mutant, table

BROKER = table(
    Mutant(
        "the server's own limit of partitions does not count",
        "broker/handlers/describe_topic_partitions.py",
        "limit = max(1, min(most, request.response_partition_limit))",
        "limit = max(1, request.response_partition_limit)",
        Breaks.ANSWERS,
        ("kip/test_kip_966_api.py::test_the_servers_limit_counts_too",),
        ("Sends no more partitions than the caller and the server allow",),
    ),
)
