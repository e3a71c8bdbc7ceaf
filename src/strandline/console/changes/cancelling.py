"""The end of a partition's move, with the code of `strandline reassignments cancel`."""

from msgspec import Struct

from strandline.client.admin.partitions import Place
from strandline.client.admin.replicas.reassignments import Move, alter_moves, list_moves
from strandline.client.errors import StrandlineError
from strandline.console.facts import Observed
from strandline.console.table import Json
from strandline.console.view import Change, Int32


class Cancelled(Struct, frozen=True, forbid_unknown_fields=True):
    topic: str
    partition: Int32

    @property
    def at(self) -> Place:
        return Place(self.topic, self.partition)


def plan(observed: Observed, wanted: Cancelled) -> Json:
    found = next((move for move in list_moves(observed.config) if move.at == wanted.at), None)
    if found is None:
        raise StrandlineError(f"{wanted.at} is not being reassigned (any more)")
    return {"lines": lines_of(found)}


def lines_of(move: Move) -> list[str]:
    row = move.row
    kept = [node for node in row.replicas if node not in row.adding_replicas]
    lines = [f"{move.at} keeps the replicas of before: {', '.join(map(str, kept))}."]
    if row.adding_replicas:
        lines.append(f"What was copied to {', '.join(map(str, row.adding_replicas))} is deleted there.")
    return lines


def cancel(observed: Observed, wanted: Cancelled) -> Json:
    why = alter_moves(observed.config, {wanted.at: None}).get(wanted.at)
    if why is not None:
        raise StrandlineError(f"{wanted.at}: {why}", "it may be finished, or its new replicas may be needed already")
    return {"lines": [f"{wanted.at} does not move any more."]}


CANCEL = Change(Cancelled, plan, cancel)
