"""All transactional ids that coordinators know."""

from collections.abc import Mapping

from strandline.base.value import Value
from strandline.client.admin.transactions import Coordinated, Listed, describe_at, list_transactions
from strandline.client.brokers import BrokerAt
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest


class Transactions(Value, frozen=True):
    """`silent`: brokers that may coordinate more, and why they do not say."""

    seen: Mapping[str, Coordinated | Listed] = {}
    silent: Mapping[int, str] = {}


def ask_transactions(brokers: Mapping[int, BrokerAt]) -> Transactions:
    listed, silent = list_transactions(brokers, ListTransactionsRequest())
    answers = describe_at(brokers, {row.transactional_id: row.coordinator for row in listed})
    seen: dict[str, Coordinated | Listed] = {}
    for row in listed:
        answer = answers.get(row.transactional_id)
        seen[row.transactional_id] = answer if isinstance(answer, Coordinated) else row
    return Transactions(seen, silent)
