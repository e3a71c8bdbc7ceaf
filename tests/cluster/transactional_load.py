"""Transactions as the load of a campaign: what the judge beside the judgement asks of them, and when none is open."""

from collections import Counter
from collections.abc import Sequence

from tests.cluster.hour import Wrong

from strandline.base.ids import TopicPartition
from strandline.client.ask import ask
from strandline.history.operation import Operation, Outcome
from strandline.testing.local_cluster import HOST, NodeProcess
from strandline.wire.messages.transactions.describe_producers import DescribeProducersRequest, TopicRequest

TRANSACTION_PACE = {
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


def whole(operations: Sequence[Operation]) -> dict[str, int]:
    """Simpler than the judgement, and by values alone: every value is written once, so the last readers have all values
    of a transaction once, or none of them. All, if its commit was acknowledged; none, if it was not committed."""
    found: Counter[bytes] = Counter()
    seen: set[bytes] = set()
    for operation in operations:
        seen.update(read.value for read in operation.reads)
        if operation.process.startswith("last-"):
            found.update(read.value for read in operation.reads)
    counts: Counter[Outcome] = Counter()
    doubtful = records = 0
    for operation in operations:
        if not operation.transactional_id:
            continue
        times = [found[write.value] for write in operation.writes]
        counts[operation.outcome] += 1
        if operation.outcome is Outcome.FAIL and any(write.value in seen for write in operation.writes):
            raise Wrong(f"something of a transaction was read that was not committed: {operation}")
        if operation.outcome is Outcome.OK and any(count != 1 for count in times):
            raise Wrong(f"a transaction was committed, and is not there once as a whole ({times}): {operation}")
        if operation.outcome is Outcome.UNKNOWN and set(times) not in ({0}, {1}, set()):
            raise Wrong(f"a part of a transaction is there ({times}): {operation}")
        doubtful += operation.outcome is Outcome.UNKNOWN and 1 in times
        records += sum(times)
    if strange := found.keys() - {write.value for operation in operations for write in operation.writes}:
        raise Wrong(f"nobody has written {sorted(strange)[:5]}")
    return {
        "transactions committed": counts[Outcome.OK],
        "of these not wholly there": 0,
        "transactions not committed": counts[Outcome.FAIL],
        "of these anything read": 0,
        "transactions of which nobody knows": counts[Outcome.UNKNOWN],
        "of these there as a whole": doubtful,
        "records of committed transactions": records,
    }


def open_transactions(brokers: Sequence[NodeProcess], ats: Sequence[TopicPartition]) -> str:
    """Where one is open, or nobody can say. Empty: none is."""
    wrong = []
    for at in ats:
        asked = DescribeProducersRequest(topics=(TopicRequest(name=at.topic, partition_indexes=(at.partition,)),))
        for broker in brokers:
            try:
                (row,) = ask(HOST, broker.port, asked, None, timeout_s=1).topics[0].partitions
            except OSError as error:
                wrong.append(f"{broker.node_id}: {error or 'no answer'}")
                continue
            opened = [one for one in row.active_producers if one.current_txn_start_offset >= 0]
            if row.error_code or opened:
                wrong.append(f"{at} on {broker.node_id}: error {row.error_code}, {opened}")
    return "; ".join(wrong)
