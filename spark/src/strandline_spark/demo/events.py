"""The demonstration's events: a web shop's, with the skew that real ones have; and the producer that writes them.

A few events in ten thousand are not what they should be, as in every real topic: cut off, or with a text for a number.
"""

import json
import time
from collections.abc import Iterator
from itertools import accumulate
from random import Random

from confluent_kafka import KafkaError, Message

from strandline.cli.records.produce import Acknowledgements
from strandline.demo.demonstration import keep_rate, safe_producer

KINDS = {"view": 70, "cart": 16, "order": 9, "payment": 5}
PRODUCTS = ("lamp", "chair", "desk", "shelf", "rug", "mirror", "clock", "vase", "sofa", "stool")
COUNTRIES = {"DE": 30, "FR": 22, "IT": 14, "NL": 9, "PL": 9, "ES": 8, "AT": 5, "CH": 3}
USERS = 20_000
BAD_ONE_IN = 2_500


class Shop:
    """Events without end; the same seed gives the same ones but for their times."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.made = 0
        self.prices = {product: 1_900 + 1_370 * place for place, product in enumerate(PRODUCTS)}
        self.popular = list(accumulate(1 / (place + 1) for place in range(len(PRODUCTS))))

    def events(self) -> Iterator[tuple[bytes, bytes]]:
        """Key and value of one after another: the user, and the event as JSON."""
        draw = self.random
        while True:
            user = int(USERS * draw.random() ** 3)  # a few are here all the time
            product = draw.choices(PRODUCTS, cum_weights=self.popular)[0]
            quantity = 1 + int(3 * draw.random() ** 4)
            event = {
                "event_id": self.made,
                "kind": draw.choices(list(KINDS), list(KINDS.values()))[0],
                "user_id": user,
                "product": product,
                "quantity": quantity,
                "amount_cents": quantity * self.prices[product],
                "country": draw.choices(list(COUNTRIES), list(COUNTRIES.values()))[0],
                "at": round(time.time(), 3),
            }
            value = json.dumps(event, separators=(",", ":")).encode()
            if draw.randrange(BAD_ONE_IN) == 0:
                value = value[:-9] if draw.random() < 0.5 else value.replace(b'"quantity":', b'"quantity":"some ')
            self.made += 1
            yield b"%d" % user, value


class ShopWriter:
    """Writes events at an even rate, and has each acknowledgement noted for the audit."""

    def __init__(self, bootstrap: str, topic: str, rate: int, noted: Acknowledgements, seed: int = 1) -> None:
        self.topic = topic
        self.rate = rate
        self.events = Shop(seed).events()
        self.acknowledged = 0
        self.failed = 0
        self.by_second: dict[int, int] = {}  # acknowledgements, by the second of the Unix epoch
        self.last_s = 0.0  # when the last one came
        self.silence_s = 0.0  # the longest time without one
        self.noted = noted
        self.producer = safe_producer(bootstrap)

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed += 1
            return
        now = time.time()
        self.noted.note(message)
        self.silence_s = max(self.silence_s, now - (self.last_s or now))
        self.last_s = now
        self.acknowledged += 1
        self.by_second[int(now)] = self.by_second.get(int(now), 0) + 1

    def write_until(self, over: float) -> None:
        """Keep the rate until this instant of the monotonic clock, whatever happens to the cluster."""
        keep_rate(self.producer, self.rate, over, self.send)
        self.noted.write()

    def send(self) -> None:
        key, value = next(self.events)
        self.producer.produce(self.topic, value, key, on_delivery=self.delivered)

    def rest(self, span_s: float) -> None:
        """Write nothing for a while. Nothing is acknowledged then, and this does not count as an interruption."""
        self.producer.poll(span_s)
        self.noted.write()
        self.last_s = 0.0

    def finish(self) -> None:
        """Wait for what is under way: each event is acknowledged, or given up by the producer."""
        while self.producer.flush(1.0):
            self.noted.write()
        self.noted.write()
