"""Fields that mean the same in every command."""

from typing import Annotated

from msgspec import Meta


def says(text: str) -> Meta:
    """The description of a field, for the schema and the page."""
    return Meta(description=text)


Topic = Annotated[str, says("the topic's name")]
Partition = Annotated[int, says("the partition's number")]
Epoch = Annotated[int, says("the leader epoch")]
Milliseconds = Annotated[int, says("milliseconds since 1970, UTC")]
Outcome = Annotated[str, says("planned without --execute; else what was done, or failed")]
Error = Annotated[str | None, says("null if nothing went wrong")]
