"""Watched clients of aiokafka."""

from typing import Any, Self

from strandline.history.operation import Outcome
from strandline.testing.watching.watched import NEVER_SENT, PolledConsumer, WatchedProducer


class Producer(WatchedProducer):
    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Any = None,
    ) -> Any:
        """As the client's: a future of what the broker says."""
        send, pairs = self.sending(topic, value, headers, partition)
        try:
            future = await self.client.send(topic, value, key, partition, timestamp_ms, pairs)
        except BaseException as error:
            self.recording.failed(send, error, certainly=True)
            raise

        def done(future: Any) -> None:
            if future.cancelled():
                self.recording.failed(send, "cancelled", certainly=False)
            elif future.exception() is not None:
                error = future.exception()
                self.recording.failed(send, repr(error), certainly=type(error).__name__ in NEVER_SENT)
            else:
                self.recording.acknowledged(send, future.result().partition, future.result().offset)

        future.add_done_callback(done)
        return future

    async def send_and_wait(self, *what: Any, **named: Any) -> Any:
        return await (await self.send(*what, **named))

    async def __aenter__(self) -> Self:
        await self.client.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.client.stop()

    async def begin_transaction(self) -> None:
        await self.client.begin_transaction()
        self.began()

    async def commit_transaction(self) -> None:
        try:
            await self.client.commit_transaction()
        except BaseException as error:
            self.ended(Outcome.UNKNOWN, repr(error))
            raise
        self.ended(Outcome.OK)

    async def abort_transaction(self) -> None:
        try:
            await self.client.abort_transaction()
        except BaseException as error:
            self.ended(Outcome.UNKNOWN, repr(error))
            raise
        self.ended(Outcome.FAIL)

    def transaction(self) -> "Transaction":
        return Transaction(self)


class Transaction:
    """`async with producer.transaction()`."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer

    async def __aenter__(self) -> "Transaction":
        await self.producer.begin_transaction()
        return self

    async def __aexit__(self, kind: object, *failure: object) -> None:
        if kind is None:
            await self.producer.commit_transaction()
        else:
            await self.producer.abort_transaction()


class Consumer(PolledConsumer):
    async def getone(self, *partitions: Any) -> Any:
        began_ms = self.recording.now_ms()
        record = await self.client.getone(*partitions)
        self.got(began_ms, [record])
        return record

    async def getmany(self, *partitions: Any, **how: Any) -> Any:
        began_ms = self.recording.now_ms()
        found = await self.client.getmany(*partitions, **how)
        self.got(began_ms, [record for records in found.values() for record in records])
        return found

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        began_ms = self.recording.now_ms()
        record = await self.client.__anext__()
        self.got(began_ms, [record])
        return record

    async def __aenter__(self) -> Self:
        await self.client.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.client.stop()

    # --- other places to read from

    def seek(self, *where: Any) -> None:
        self.recording.moved(self.process)
        self.client.seek(*where)

    async def seek_to_beginning(self, *partitions: Any) -> Any:
        self.recording.moved(self.process)
        return await self.client.seek_to_beginning(*partitions)

    async def seek_to_end(self, *partitions: Any) -> Any:
        self.recording.moved(self.process)
        return await self.client.seek_to_end(*partitions)

    async def seek_to_committed(self, *partitions: Any) -> Any:
        self.recording.moved(self.process)
        return await self.client.seek_to_committed(*partitions)
