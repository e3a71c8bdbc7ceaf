"""Mutants of the metadata's records and its image."""

from tests.mutants.mutant import Breaks, Mutant, table

METADATA = table(
    Mutant(
        "replicas that are being added are not in a snapshot",
        "metadata/registrations.py",
        "        adding_replicas=partition.adding_replicas,\n",
        "",
        Breaks.AGREEMENT,
        ("unit/metadata/test_image.py::test_a_snapshot_says_all_of_a_partition_whatever_happens_to_it",),
    ),
)
