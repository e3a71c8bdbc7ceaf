"""Entries of the loss ledger that an operator has seen, recorded as `strandline losses --acknowledge` does."""

from msgspec import Struct

from strandline.client.admin.loss_acknowledgement import acknowledge, acknowledgement
from strandline.client.admin.loss_ledger import Ledger, as_json, ask_ledger, entries
from strandline.client.brokers import brokers_of
from strandline.console.facts import Observed
from strandline.console.table import Json
from strandline.console.view import Change
from strandline.diagnosis.loss_words import line_of
from strandline.wire.messages.own.describe_losses import Loss


class Acknowledged(Struct, frozen=True, forbid_unknown_fields=True):
    """Of a topic; empty: of all. `count`: how many entries the plan showed."""

    topic: str = ""
    count: int = -1


def ask(observed: Observed, wanted: Acknowledged) -> Ledger:
    return ask_ledger(brokers_of(observed.config), [wanted.topic] if wanted.topic else None)


def unseen(ledger: Ledger) -> tuple[list[Loss], list[str]]:
    """What nobody has acknowledged, and its entries as lines."""
    found = [entry for entry in entries(ledger.losses) if acknowledgement(entry, ledger.acknowledged) is None]
    losses = [loss for entry in found for loss in entry.losses if loss not in ledger.acknowledged]
    return losses, [line_of(as_json(entry)) for entry in found]


def plan(observed: Observed, wanted: Acknowledged) -> Json:
    """The entries that would be acknowledged."""
    _, lines = unseen(ask(observed, wanted))
    return {"lines": lines, "count": len(lines)}


def make(observed: Observed, wanted: Acknowledged) -> Json:
    """Nothing is acknowledged that the operator has not seen: if there are other entries now, they are shown first."""
    losses, lines = unseen(ask(observed, wanted))
    if len(lines) != wanted.count:
        return {"lines": lines, "count": len(lines), "is_done": False}
    acknowledge(observed.config, losses)
    return {"lines": lines, "count": len(lines), "is_done": True}


ACKNOWLEDGEMENT = Change(Acknowledged, plan, make)
