"""Watched clients of kafka-python."""

from typing import Any, Self

from strandline.history.operation import Outcome
from strandline.testing.watching.watched import NEVER_SENT, PolledConsumer, WatchedProducer


class Producer(WatchedProducer):
    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Any:
        """As the client's: a future of what the broker says."""
        with self.lock:
            send, pairs = self.sending(topic, value, headers, partition)
            try:
                future = self.client.send(topic, value, key, pairs, partition, timestamp_ms)
            except BaseException as error:
                self.recording.failed(send, error, certainly=True)
                raise
        future.add_callback(lambda done: self.recording.acknowledged(send, done.partition, done.offset))
        future.add_errback(
            lambda error: self.recording.failed(send, repr(error), certainly=type(error).__name__ in NEVER_SENT)
        )
        return future

    def begin_transaction(self) -> None:
        self.client.begin_transaction()
        self.began()

    def commit_transaction(self) -> None:
        try:
            self.client.commit_transaction()
        except BaseException as error:
            self.ended(Outcome.UNKNOWN, repr(error))
            raise
        self.ended(Outcome.OK)

    def abort_transaction(self) -> None:
        try:
            self.client.abort_transaction()
        except BaseException as error:
            self.ended(Outcome.UNKNOWN, repr(error))
            raise
        self.ended(Outcome.FAIL)


class Consumer(PolledConsumer):
    def poll(self, *how: Any, **named: Any) -> Any:
        began_ms = self.recording.now_ms()
        found = self.client.poll(*how, **named)
        self.got(began_ms, [record for records in found.values() for record in records])
        return found

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        began_ms = self.recording.now_ms()
        record = next(self.client)
        self.got(began_ms, [record])
        return record

    # --- other places to read from

    def seek(self, *where: Any) -> None:
        self.recording.moved(self.process)
        self.client.seek(*where)

    def seek_to_beginning(self, *partitions: Any) -> None:
        self.recording.moved(self.process)
        self.client.seek_to_beginning(*partitions)

    def seek_to_end(self, *partitions: Any) -> None:
        self.recording.moved(self.process)
        self.client.seek_to_end(*partitions)
