"""Transactions as their coordinators know them; those that hang, in words."""

from strandline.client.admin.open_transactions import find_hanging
from strandline.client.admin.partitions import describe_partitions
from strandline.client.admin.transactions import Coordinated, Listed, ProducerAt
from strandline.client.brokers import brokers_of
from strandline.client.errors import BadOption
from strandline.console.facts import Facts, Observed, now_ms
from strandline.console.table import Json, Rows
from strandline.console.view import Channel, Query, View, natural
from strandline.diagnosis import situation
from strandline.diagnosis.loss_words import when
from strandline.diagnosis.transactions import abort, coordinated_json, listed_json

MINUTE_MS = 60_000
DEFAULT_MINUTES = 15  # transaction.max.timeout.ms by default
MINUTES_MAX = 60 * 24 * 365


def transaction_rows(facts: Facts) -> Rows:
    if facts.transactions is None:
        return {}
    return {name: row_of(one) for name, one in facts.transactions.seen.items()}


def row_of(one: Coordinated | Listed) -> Json:
    """`started_at_ms` is null if none is open. A page counts how long that is by itself."""
    if isinstance(one, Listed):
        return {**listed_json(one), "producer_epoch": None, "timeout_ms": None, "started_at_ms": None, "partitions": []}
    row = coordinated_json(one, 0)
    del row["duration_ms"]
    return row


def silent_rows(facts: Facts) -> Rows:
    """Brokers that may coordinate more, and why they do not say."""
    return {} if facts.transactions is None else {str(node): why for node, why in facts.transactions.silent.items()}


def hanging(observed: Observed, query: Query) -> Json:
    """As `strandline transactions find-hanging`: transactions that nobody is going to end."""
    text = query.get("minutes", "") or str(DEFAULT_MINUTES)
    minutes = natural(text, MINUTES_MAX)
    if minutes is None:
        raise BadOption(f"'{text}' is not a number of minutes")
    states = describe_partitions(observed.config)
    before_ms = now_ms() - minutes * MINUTE_MS
    found = find_hanging(observed.config, brokers_of(observed.config), states, before_ms)
    return {"findings": [finding(one, observed.options) for one in found.hanging], "unknown": found.unknown}


def finding(one: ProducerAt, options: str) -> Json:
    """In the shape of what `explain` says."""
    what = f"{one.at}: a transaction of producer {one.producer_id} is open since offset {one.start_offset}"
    why = (
        f"producer {one.producer_id} with epoch {one.epoch} wrote there last at {when(one.last_timestamp)}",
        "it hangs: its coordinator does not know it in this partition, so nobody is going to end it",
    )
    return situation.as_json(situation.Finding(what, why, needs_action=True, ways=(abort(one, options),)))


TRANSACTIONS = View(
    "transactions",
    "Transactions",
    channels=(
        Channel("transactions", ("transactions",), transaction_rows),
        Channel("silent-transaction-coordinators", ("transactions",), silent_rows),
    ),
    reads={"hanging": hanging},
)
