"""A request in a child process, with an exception raised at one of the lines that it runs through."""

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from strandline.base.effects import Close, Received, Reply
from strandline.broker.faults.interruptible import OURS, function_of, is_interruptible
from strandline.broker.node import Node

from .digest import digest


class Planted(Exception):
    """What is raised."""


class Outcome(NamedTuple):
    lines: tuple[str, ...]  # that the request ran through, where an exception is contained
    at: str  # the last line that it ran through
    state: str  # after it
    stops: bool
    is_refused: bool
    out: str  # an exception that came out of the node


def in_child(work: Callable[[], Any]) -> Any:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, msgspec.json.encode(work()))
        except BaseException as error:
            os.write(write, msgspec.json.encode(["failed", repr(error)]))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = msgspec.json.decode(pipe.read())
    os.waitpid(child, 0)
    return found


def is_contained(frame: Any) -> bool:
    """Are all functions interruptible that an exception passes from here to where the node catches it?"""
    while frame is not None:
        module, function = frame.f_globals.get("__name__", ""), function_of(frame.f_code.co_qualname)
        if module.startswith(OURS) and not is_interruptible(module.removeprefix(OURS), function):
            return False
        if frame.f_code is Node.received.__code__:
            return True
        frame = frame.f_back
    return False  # not in a handler


def attempt(node: Node, event: Received, now: Any, raise_at: str) -> Outcome:
    """Raise when this line is reached for the first time; empty: at none."""
    lines: dict[str, None] = {}
    seen: set[str] = set()
    last = ""

    def trace(frame: Any, kind: str, _: Any) -> Any:
        nonlocal last
        if not frame.f_globals.get("__name__", "").startswith("strandline."):
            return None
        if kind == "line":
            last = (
                f"{frame.f_globals['__name__'].removeprefix('strandline.')}.{frame.f_code.co_qualname}:{frame.f_lineno}"
            )
            if last not in seen and is_contained(frame):
                lines[last] = None
            seen.add(last)
            if last == raise_at:
                sys.settrace(None)
                raise Planted(last)
        return trace

    effects: list[Any] = []
    out = ""
    sys.settrace(trace)
    try:
        effects = node.step(event, now)
    except Exception as error:
        out = repr(error)
    finally:
        sys.settrace(None)
    if not node.containment.is_stopping and not out:
        node.check()
    closed = any(isinstance(effect, Close) and effect.connection == event.to.connection for effect in effects)
    answered = any(isinstance(effect, Reply) and effect.to == event.to for effect in effects)
    return Outcome(tuple(lines), last, digest(node), node.containment.is_stopping, closed or answered, out)


def tried(node: Node, event: Received, now: Any, raise_at: str) -> Outcome:
    found = in_child(lambda: attempt(node, event, now, raise_at))
    if found[0] == "failed":
        raise AssertionError(f"line {raise_at}: {found[1]}")
    return Outcome(*found)
