"""Watched clients of confluent-kafka. Its own objects are C, and take no other methods."""

from collections.abc import Callable
from typing import Any

from strandline.history.operation import Outcome
from strandline.testing.watching.watched import Watched, WatchedProducer

NEVER_SENT = (
    "_PURGE_QUEUE",
    "_UNKNOWN_PARTITION",
    "_UNKNOWN_TOPIC",
    "INVALID_RECORD",
    "MSG_SIZE_TOO_LARGE",
    "TOPIC_AUTHORIZATION_FAILED",
)  # errors of records that no broker has taken
UNKNOWN_PARTITION = -1


class Producer(WatchedProducer):
    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = UNKNOWN_PARTITION,
        on_delivery: Callable[[Any, Any], None] | None = None,
        timestamp: int = 0,
        headers: Any = None,
        *,
        callback: Callable[[Any, Any], None] | None = None,
        **others: Any,
    ) -> None:
        """As the client's."""
        with self.lock:
            send, pairs = self.sending(topic, value, headers, partition)
            theirs = on_delivery or callback

            def delivered(error: Any, message: Any) -> None:
                if error is None:
                    self.recording.acknowledged(send, message.partition(), message.offset())
                else:
                    if message is not None and message.partition() is not None and message.partition() >= 0:
                        send.partition = message.partition()
                    self.recording.failed(send, error, certainly=error.name() in NEVER_SENT)
                if theirs is not None:
                    theirs(error, message)

            if timestamp:
                others["timestamp"] = timestamp
            try:
                self.client.produce(
                    topic, value=value, key=key, partition=partition, on_delivery=delivered, headers=pairs, **others
                )
            except BaseException as error:
                self.recording.failed(send, error, certainly=True)
                raise

    def begin_transaction(self, *how: Any) -> None:
        self.client.begin_transaction(*how)
        self.began()

    def commit_transaction(self, *how: Any) -> None:
        try:
            self.client.commit_transaction(*how)
        except BaseException as error:
            if not must_abort(error):
                self.ended(Outcome.UNKNOWN, error)
            raise
        self.ended(Outcome.OK)

    def abort_transaction(self, *how: Any) -> None:
        try:
            self.client.abort_transaction(*how)
        except BaseException as error:
            self.ended(Outcome.UNKNOWN, error)
            raise
        self.ended(Outcome.FAIL)


class SerializingProducer(Producer):
    """Its key comes before its value."""

    def produce(  # type: ignore[override]  # as the client's
        self, topic: str, key: Any = None, value: Any = None, *what: Any, **named: Any
    ) -> None:
        super().produce(topic, value, key, *what, **named)


def must_abort(error: BaseException) -> bool:
    """Then the transaction is still open, and its end is still to come."""
    found = error.args[0] if error.args else None
    return bool(getattr(found, "txn_requires_abort", bool)() or getattr(found, "retriable", bool)())


class Consumer(Watched):
    def poll(self, timeout: float = -1.0) -> Any:
        began_ms = self.recording.now_ms()
        message = self.client.poll(timeout)
        self.got(began_ms, [] if message is None else [message])
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1.0) -> Any:
        began_ms = self.recording.now_ms()
        messages = self.client.consume(num_messages, timeout)
        self.got(began_ms, messages)
        return messages

    def got(self, began_ms: int, messages: list[Any]) -> None:
        self.recording.poll(
            self.process,
            began_ms,
            [(m.topic(), m.partition(), m.offset(), m.value(), m.headers()) for m in messages if m.error() is None],
        )

    def __iter__(self) -> "Consumer":
        return self

    def __next__(self) -> Any:
        message = self.poll()
        if message is None:
            raise StopIteration
        return message

    # --- other places to read from

    def subscribe(self, topics: list[str], on_assign: Any = None, on_revoke: Any = None, on_lost: Any = None) -> None:
        given = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost}
        callbacks = {name: self.noticing(theirs) for name, theirs in given.items() if theirs or name == "on_assign"}
        self.client.subscribe(topics, **callbacks)

    def noticing(self, theirs: Any) -> Callable[[Any, Any], None]:
        def notice(consumer: Any, partitions: Any) -> None:
            self.recording.moved(self.process)
            if theirs is not None:
                theirs(self, partitions)

        return notice

    def assign(self, *what: Any) -> None:
        self.recording.moved(self.process)
        self.client.assign(*what)

    def incremental_assign(self, *what: Any) -> None:
        self.recording.moved(self.process)
        self.client.incremental_assign(*what)

    def seek(self, *where: Any) -> None:
        self.recording.moved(self.process)
        self.client.seek(*where)
