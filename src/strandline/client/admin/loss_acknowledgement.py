"""Entries of the loss ledger that an operator has seen: which those are, and what says so to the controller."""

import getpass
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from msgspec.structs import replace

from strandline.base.ids import Uuid
from strandline.client.admin.loss_ledger import Entry
from strandline.client.ask import Servers, ask_any
from strandline.metadata.acknowledgements import Acknowledged, id_of
from strandline.wire.messages.own.acknowledge_losses import ENTRIES_MAX, AcknowledgeLossesRequest, SeenLosses
from strandline.wire.messages.own.describe_losses import Loss

ACKNOWLEDGE_S = 35.0  # longer than the broker tries


def acknowledge(bootstrap: Servers, losses: Iterable[Loss]) -> None:
    """Have it recorded in the metadata log that this operator has seen them."""
    for request in seen_losses(losses):
        ask_any(bootstrap, replace(request, asked_by=operator()), 0, ACKNOWLEDGE_S)


def operator() -> str:
    """Who asks, as this machine names him."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def acknowledgement(entry: Entry, acknowledged: Mapping[Loss, Acknowledged]) -> Acknowledged | None:
    """The last one, if all that the entry stands for is acknowledged."""
    seen = [acknowledged[loss] for loss in entry.losses if loss in acknowledged]
    return max(seen, key=lambda one: one.time_ms) if len(seen) == len(entry.losses) else None


def seen_losses(losses: Iterable[Loss]) -> Iterator[AcknowledgeLossesRequest]:
    """What acknowledges them all, a bounded number in each request."""
    losses = iter(losses)
    while some := tuple(islice(losses, ENTRIES_MAX)):
        ids: dict[tuple[Uuid, int], list[int]] = {}
        for loss in some:
            ids.setdefault((Uuid(loss.topic_id), loss.partition), []).append(id_of(loss))
        rows = (SeenLosses(topic_id=at[0], partition=at[1], ids=tuple(found)) for at, found in ids.items())
        yield AcknowledgeLossesRequest(partitions=tuple(rows))
