"""A digest of everything that a node holds, to see whether a request has changed anything."""

from collections import deque
from collections.abc import Iterable
from enum import Enum
from hashlib import blake2b
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from strandline.broker.node import Node
from strandline.security.acls.authorizer import Authorizer, Rights

ATOMS = (int, float, bool, str, bytes, type(None), type, range)
# Counters and clocks of no consequence; what the containment itself notes; and what is not the node's.
LEFT_OUT = {"counters", "counts", "containment", "quarantine", "step", "rng", "own_count"}
# Decisions that are made again if they are not there.
CACHES = {Authorizer: {"known", "kept"}, Rights: {"decided", "readable", "writable"}}
FOREIGN = (Random, ModuleType, FunctionType, MethodType, BuiltinFunctionType)


def digest(node: Node) -> str:
    found = blake2b(digest_size=16)
    seen: dict[int, int] = {}
    keep: list[Any] = []  # so that no id is used twice
    todo: list[Any] = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, Enum):
            found.update(f"{type(one).__name__}.{one.name}".encode())
        elif isinstance(one, ATOMS):
            found.update(f"{type(one).__name__}:{one!r};".encode())
        elif isinstance(one, bytearray | memoryview):
            found.update(bytes(one))
        elif isinstance(one, FOREIGN):
            found.update(type(one).__name__.encode())
        elif id(one) in seen:
            found.update(f"#{seen[id(one)]}".encode())
        else:
            seen[id(one)] = len(seen)
            keep.append(one)
            found.update(f"<{type(one).__name__}".encode())
            todo += parts(one)
    return found.hexdigest()


def parts(one: Any) -> Iterable[Any]:
    if isinstance(one, dict):
        return [part for pair in one.items() for part in pair]
    if isinstance(one, set | frozenset):
        return sorted(one, key=repr)
    if isinstance(one, list | tuple | deque):
        return list(one)
    names = [*getattr(one, "__struct_fields__", ())]
    for cls in type(one).__mro__:
        names += [name for name in getattr(cls, "__slots__", ()) if not name.startswith("__")]
    names += getattr(one, "__dict__", {})
    left_out = LEFT_OUT | CACHES.get(type(one), set())
    return [part for name in sorted(set(names)) if name not in left_out for part in (name, getattr(one, name, None))]
