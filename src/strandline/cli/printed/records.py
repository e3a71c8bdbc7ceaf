"""Records."""

from typing import Annotated, TypedDict

from strandline.cli.printed.words import Milliseconds, Partition, Topic, says


class Record(TypedDict):
    """One record. Each line of the output is one."""

    topic: Topic
    partition: Partition
    offset: int
    timestamp: Milliseconds
    key: Annotated[str | None, says("bytes that are not UTF-8 are written as \\xNN")]
    value: str | None
