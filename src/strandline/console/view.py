"""What a view is made of: what it shows live, what it asks for, and what it changes."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from strandline.base.value import Value
from strandline.console.facts import Facts, Observed
from strandline.console.table import Json, Rows

INT32_MAX, INT64_MAX = (1 << 31) - 1, (1 << 63) - 1
Int32 = Annotated[int, Meta(ge=-1, le=INT32_MAX)]  # a partition or a broker; -1: none
Offset = Annotated[int, Meta(ge=0, le=INT64_MAX)]
Query = Mapping[str, str]  # of a GET; what is too long for one, such as a schema, comes in a POST


class Channel(Value, frozen=True):
    """Rows that browsers keep up to date: a pure function of the facts, made anew when one of them comes in."""

    name: str
    of: tuple[str, ...]  # the sources (`console.facts`) whose facts it needs
    rows: Callable[[Facts], Rows]


class Change(Value, frozen=True):
    """Something that the console does to the cluster. The plan says what it would do, and changes nothing.

    Both are given what is wanted, decoded as `wanted`. They raise StrandlineError if the cluster refuses.
    """

    wanted: type[Struct]
    plan: Callable[[Observed, Any], Json]
    make: Callable[[Observed, Any], Json]
    private: tuple[str, ...] = ()  # fields of `wanted` that no log shows


class View(Value, frozen=True):
    name: str  # also of its module in static/views
    title: str
    channels: tuple[Channel, ...] = ()
    reads: Mapping[str, Callable[[Observed, Query], Json]] = {}  # what it asks for when a user opens something
    changes: Mapping[str, Change] = {}


def natural(text: str, most: int) -> int | None:
    """None: it is not a number from 0 to `most`."""
    if not text.isdecimal() or len(text) > len(str(most)):
        return None
    number = int(text)
    return number if number <= most else None
