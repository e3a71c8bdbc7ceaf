"""A producer whose records replace one another: few keys, and now and then one is deleted."""

from strandline.sim.clients.producer import Producer
from strandline.wire.batch import Draft

KEYS = 7
TOMBSTONES = 5  # of so many records one is a tombstone


class Keyed(Producer):
    """Which key, and whether it is deleted, follows from the number in the value: a batch that is sent again is the
    same."""

    def drafts(self, values: tuple[bytes, ...]) -> list[Draft]:
        now = self.stage.wall_ms()
        return [(now, b"%d" % (number_of(value) * 3 % KEYS), self.content(value), ()) for value in values]

    def content(self, value: bytes) -> bytes | None:
        return value if number_of(value) % TOMBSTONES else None

    def stored(self, values: tuple[bytes, ...]) -> tuple[bytes, ...]:
        return tuple(self.content(value) or b"" for value in values)


def number_of(value: bytes) -> int:
    return int(value.rpartition(b"-")[2])
