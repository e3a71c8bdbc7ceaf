"""Which transactions of the sink are open now, by what the coordinators list."""

from typing import NamedTuple

from strandline.base.errors import error_of
from strandline.client.cluster import Cluster
from strandline.client.errors import KafkaError
from strandline.txn.states import State
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest
from strandline_spark.sink.exactly_once.names import parsed, pattern_of


class Open(NamedTuple):
    ids: list[str]
    silent: list[str]  # why some coordinators did not say


def open_ids(cluster: Cluster, name: str | None = None) -> Open:
    """The ids of tasks of this write, or of all writes, with an open transaction."""
    request = ListTransactionsRequest(state_filters=(State.ONGOING.named,), transactional_id_pattern=pattern_of(name))
    ids: list[str] = []
    silent: list[str] = []
    for node in sorted(cluster.brokers()):
        try:
            answer = cluster.ask(node, request)
        except KafkaError as error:
            silent.append(f"broker {node}: {error.problem}")
            continue
        if answer.error_code:
            silent.append(f"broker {node} refuses: {error_of(answer.error_code).name}")
        ids += [row.transactional_id for row in answer.transaction_states]
    found = [one for one in ids if (at := parsed(one)) is not None and (name is None or at.name == name)]
    return Open(sorted(found), silent)
