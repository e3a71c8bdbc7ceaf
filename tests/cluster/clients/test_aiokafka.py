"""aiokafka, whose protocol code is its own, against a cluster that stays whole."""

import asyncio
import uuid
import warnings
from collections.abc import Awaitable, Callable

import pytest
from tests.cluster.driving import create

from strandline.testing.local_cluster import LocalCluster

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

DAY_ONE = 1_700_000_000_000


async def until_so(condition: Callable[[], Awaitable[bool]], timeout_s: float = 20.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not await condition():
            await asyncio.sleep(0.02)


async def send(cluster: LocalCluster, topic: str, *values: bytes | None, **settings: object) -> None:
    async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", **settings) as producer:
        for i, value in enumerate(values):
            await producer.send_and_wait(
                topic, value, key=b"k%d" % i, timestamp_ms=DAY_ONE + i, headers=[("n", b"%d" % i), ("e", b"")]
            )


def reader(cluster: LocalCluster, *topics: str, **settings: object) -> AIOKafkaConsumer:
    chosen = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **settings}
    return AIOKafkaConsumer(*topics, bootstrap_servers=cluster.bootstrap, **chosen)


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were_sent(shared_cluster: LocalCluster, topic: str, codec: str | None) -> None:
    values = [b"", None, b"x" * 300_000, b"last"]

    async def run() -> None:
        await send(shared_cluster, topic, *values, compression_type=codec)
        async with reader(shared_cluster, topic) as consumer:
            got = [await asyncio.wait_for(consumer.getone(), 10) for _ in values]
        assert [record.value for record in got] == values
        assert [record.key for record in got] == [b"k%d" % i for i in range(4)]
        assert [record.timestamp for record in got] == [DAY_ONE + i for i in range(4)]
        assert got[2].headers == (("n", b"2"), ("e", b""))

    asyncio.run(run())


def test_an_idempotent_producer_a_seek_and_the_ends(shared_cluster: LocalCluster, topic: str) -> None:
    async def run() -> None:
        await send(shared_cluster, topic, *[b"%d" % i for i in range(50)], enable_idempotence=True)
        where = TopicPartition(topic, 0)
        async with reader(shared_cluster) as consumer:
            consumer.assign([where])
            assert await consumer.beginning_offsets([where]) == {where: 0}
            assert await consumer.end_offsets([where]) == {where: 50}
            found = await consumer.offsets_for_times({where: DAY_ONE + 20})
            assert (found[where].offset, found[where].timestamp) == (20, DAY_ONE + 20)
            consumer.seek(where, 40)
            assert (await asyncio.wait_for(consumer.getone(), 10)).value == b"40"

    asyncio.run(run())


def test_a_group_goes_on_where_it_committed(shared_cluster: LocalCluster, topic: str) -> None:
    async def run() -> None:
        await send(shared_cluster, topic, b"1", b"2", b"3")
        where = TopicPartition(topic, 0)
        async with reader(shared_cluster, topic, group_id=topic) as consumer:
            await asyncio.wait_for(consumer.getone(), 10)
            await consumer.commit({where: 1})
        async with reader(shared_cluster, topic, group_id=topic) as consumer:
            assert (await asyncio.wait_for(consumer.getone(), 10)).value == b"2"
            assert await consumer.committed(where) == 1

    asyncio.run(run())


def test_two_members_share_the_partitions(shared_cluster: LocalCluster) -> None:
    name = f"a-{uuid.uuid4().hex[:10]}"
    create(shared_cluster, name, partitions=4)

    async def run() -> None:
        settings = {"group_id": name, "heartbeat_interval_ms": 200, "session_timeout_ms": 6000}
        async with reader(shared_cluster, name, **settings) as one:
            async with reader(shared_cluster, name, **settings) as two:

                async def even() -> bool:
                    return len(one.assignment()) == len(two.assignment()) == 2

                await until_so(even)
                assert one.assignment() | two.assignment() == {TopicPartition(name, p) for p in range(4)}

            async def all_of_them() -> bool:
                return len(one.assignment()) == 4

            await until_so(all_of_them)

    asyncio.run(run())


def test_topics_are_created_and_deleted(shared_cluster: LocalCluster) -> None:
    name = f"a-{uuid.uuid4().hex[:10]}"

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=shared_cluster.bootstrap)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(name, 2, 3)])

            async def there() -> bool:
                return name in await admin.list_topics()

            await until_so(there)
            (answer,) = await admin.describe_topics([name])
            assert len(answer["partitions"]) == 2
            await admin.delete_topics([name])

            async def gone() -> bool:
                return name not in await admin.list_topics()

            await until_so(gone)
        finally:
            await admin.close()

    asyncio.run(run())


def test_only_what_a_transaction_commits_is_read(shared_cluster: LocalCluster, topic: str) -> None:
    async def run() -> None:
        async with AIOKafkaProducer(bootstrap_servers=shared_cluster.bootstrap, transactional_id=topic) as producer:
            for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
                await producer.begin_transaction()
                await producer.send_and_wait(topic, value)
                await (producer.commit_transaction() if commits else producer.abort_transaction())
        async with reader(shared_cluster, topic, isolation_level="read_committed") as consumer:
            got = [await asyncio.wait_for(consumer.getone(), 10) for _ in range(2)]
        assert [record.value for record in got] == [b"a", b"c"]

    asyncio.run(run())
