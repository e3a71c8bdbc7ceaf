"""`strandline groups list`: the groups of all coordinators."""

from typing import Annotated

from cyclopts import Parameter

from strandline.cli.connect import HERE, Json, OfCluster, misuse
from strandline.cli.groups.choosing import report_silent
from strandline.cli.groups.columns import LISTED, show_groups
from strandline.client.admin.groups.described import STATES, TYPES
from strandline.client.admin.groups.states import list_groups
from strandline.client.brokers import brokers_of
from strandline.diagnosis.groups.rows import listed_json

Repeated = Annotated[list[str] | None, Parameter(negative="")]
Types = Annotated[list[str] | None, Parameter(name="--type", negative="")]


def list_all(
    *, state: Repeated = None, group_type: Types = None, cluster: OfCluster = HERE, json_output: Json = False
) -> int:
    """List the groups of all coordinators. Exit status 3 if one of them does not answer.

    Parameters
    ----------
    state
        only groups in this state, such as stable or Empty; may be repeated, or a list with commas
    group_type
        only groups of this type: classic or consumer; may be repeated, or a list with commas
    """
    states, types = known(state, STATES, "state"), known(group_type, TYPES, "type")
    found, silent = list_groups(brokers_of(cluster.config), states, types)
    show_groups([listed_json(row) for row in found], LISTED, json_output)
    return report_silent(silent)


def known(given: list[str] | None, names: tuple[str, ...], what: str) -> list[str]:
    """In Kafka's spelling, in whatever case they are given."""
    by_lower = {name.lower(): name for name in names}
    wanted = [part.strip() for text in given or () for part in text.split(",")]
    wrong = [text for text in wanted if text.lower() not in by_lower]
    if wrong:
        misuse(f"'{wrong[0]}' is not a {what} of a group", f"there are {', '.join(names)}")
    return [by_lower[text.lower()] for text in wanted]
