"""A producer whose records replace one another: few keys, and now and then one is deleted."""

from strandline.sim.clients.producer import Producer
from strandline.wire.batch import Draft

KEYS = 7
TOMBSTONES = 5  # of so many records one is a tombstone
ONCE = 11  # of so many records one has a key of its own


class Keyed(Producer):
    """Which key, and whether it is deleted, follows from the number in the value: a batch that is sent again is the
    same."""

    def drafts(self, values: tuple[bytes, ...]) -> list[Draft]:
        now = self.stage.wall_ms()
        return [(now, self.key_of(number_of(value)), self.content(value), ()) for value in values]

    def key_of(self, number: int) -> bytes:
        return b"%d" % (number * 3 % KEYS)

    def content(self, value: bytes) -> bytes | None:
        return value if number_of(value) % TOMBSTONES else None

    def stored(self, values: tuple[bytes, ...]) -> tuple[bytes, ...]:
        return tuple(self.content(value) or b"" for value in values)


class Lasting(Keyed):
    """Now and then there is a record that none replaces: the old segments have to keep it."""

    def key_of(self, number: int) -> bytes:
        return super().key_of(number) if number % ONCE else b"once-%d" % number


def number_of(value: bytes) -> int:
    return int(value.rpartition(b"-")[2])
