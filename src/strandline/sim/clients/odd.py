"""A producer that strains what a broker knows of producers: its sequences begin anew in the middle, and now and then it
sends what no client may send, and must be refused it. Nothing is asked of its answers here: `laws.answers` judges them.
"""

from collections.abc import Iterator
from functools import partial

from strandline.sim.clients.client import Life
from strandline.sim.clients.producer import Producer
from strandline.wire.batch import SEQUENCE_MAX, build

ODD = 5  # of so many batches one is followed by an odd one


class Odd(Producer):
    first_sequence = SEQUENCE_MAX - 9

    def produce(self, values: tuple[bytes, ...]) -> Life:
        begins, before = self.sequence, self.acked
        yield from super().produce(values)
        if self.acked == before or self.route is None or self.rng.randrange(ODD):
            return
        self.report(f"sends what it must not, behind {values[0]!r}")
        yield self.request(self.route, self.rng.choice(list(self.oddities(values, begins))))
        self.producer_id = -1  # wherever that was written, its sequences are another's now

    def oddities(self, values: tuple[bytes, ...], begins: int) -> Iterator[bytes]:
        more = self.drafts((*values, values[0] + b"+"))
        known = partial(build, more, producer_id=self.producer_id, producer_epoch=self.producer_epoch)
        yield known(base_sequence=begins)  # begins as the last batch does, and ends later
        yield known(base_sequence=self.sequence, delete_horizon=self.stage.wall_ms())  # a cleaner's mark
        yield known(base_sequence=self.sequence, control=True)
        damaged = bytearray(known(base_sequence=self.sequence))
        damaged[-2] ^= 1  # on its way
        yield bytes(damaged)
