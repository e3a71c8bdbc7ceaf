"""One name for "immutable value", so that its implementation can change in one line."""

from msgspec import Struct


class Value(Struct, frozen=True):
    """An immutable value with equality, a repr and positional arguments: events, effects, ids, configuration."""
