"""Which machines are alike: those that will do the same, whatever they are given.

All that a machine holds is looked at, also what the functions remember that it will call when a write ends, or when a
request need not wait any more. Left out are times and numbers of requests, of which only the order matters.
"""

from collections import deque
from enum import Enum
from types import FunctionType, MethodType
from typing import Any

from msgspec import Struct

from strandline.sim.model.transactions.machine import HeldLog, Ids, Machine
from strandline.txn.adding import Adding
from strandline.txn.ending import Ending
from strandline.txn.initializing import Initializing
from strandline.txn.markers import Markers
from strandline.txn.shard import Waiter
from strandline.txn.shards import TxnShards

Likeness = tuple[Any, ...]

PARTS = (Adding, Ending, Initializing, Markers, TxnShards, HeldLog, Ids)  # each machine has one
TIMES = frozenset(("now", "due", "updated_at", "started_at"))


def likeness(machine: Machine) -> Likeness:
    shards, markers = machine.transactions.shards, machine.transactions.markers
    seen: dict[int, int] = {}
    held = (
        machine.log.epoch,
        machine.log.has_committed,
        machine.log.value if not machine.log.has_committed else None,
        machine.ids.given,
        [done for _, done in machine.log.under_way],
        {p: (shard.leader_epoch, shard.entries) for p, shard in shards.loaded.items()},
        set(shards.loading),
        [waiter for waiter in shards.waiters if not waiter.done],
        markers.decisions,
        markers.waiting,
        {node: rows for node, (_, rows) in markers.under_way.items()},
        markers.pausing,
        markers.unwritten,
        sorted(machine.markers),
        machine.due,
    )
    found = seen_as(held, seen)
    assert isinstance(found, tuple)
    return found


def seen_as(thing: Any, seen: dict[int, int]) -> Any:
    """A value that is equal for what is alike. `seen`: what may change is named by its number when it comes again."""
    if thing is None or isinstance(thing, (bool, int, str, bytes, Enum)):
        return thing
    if isinstance(thing, Struct):
        rows = (seen_as(getattr(thing, name), seen) for name in thing.__struct_fields__ if name not in TIMES)
        return (type(thing).__name__, *rows)
    if isinstance(thing, (tuple, list, deque)):
        return tuple(seen_as(one, seen) for one in thing if not is_over(one))
    if isinstance(thing, PARTS):
        return type(thing).__name__
    if isinstance(thing, dict):
        return tuple((seen_as(key, seen), seen_as(value, seen)) for key, value in thing.items())
    if isinstance(thing, set):
        return tuple(sorted(thing))
    if isinstance(thing, MethodType):
        return thing.__func__.__qualname__, seen_as(thing.__self__, seen)
    number = seen.get(id(thing))
    if number is not None:
        return "again", number
    seen[id(thing)] = len(seen)
    if isinstance(thing, FunctionType):
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
        held = (seen_as(cell.cell_contents, seen) for name, cell in cells if name not in TIMES)
        return (thing.__qualname__, *held, seen_as(thing.__defaults__, seen))
    return type(thing).__name__, *(seen_as(value, seen) for name, value in fields_of(thing) if name not in TIMES)


def is_over(thing: Any) -> bool:
    return isinstance(thing, Waiter) and thing.done


def fields_of(thing: Any) -> list[tuple[str, Any]]:
    if hasattr(thing, "__slots__"):
        return [(name, getattr(thing, name)) for name in thing.__slots__]
    return list(vars(thing).items())
