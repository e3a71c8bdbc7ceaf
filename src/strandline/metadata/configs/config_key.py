"""One configuration key: its name, its type, its default, and what it refuses.

Both tables of the project (node configuration, topic configuration) are lists of these rows. A refusal is a text in
Kafka's words, because operators search for those words.

Invariants:
  - the default of every key passes the key's own check (of one that is required there is none to pass it);
  - `parse` never fails on a text for which `why_invalid` says None.
"""

from collections.abc import Callable

from strandline.base.secret import Secret
from strandline.base.value import Value

ConfigValue = bool | int | float | str | tuple[str, ...] | Secret | None


class OfList(Value, frozen=True):
    """Why a list is refused. Kafka has sentences for lists as a whole, and names the entry that is wrong."""

    reason: str
    entry: str | None = None  # None: it is the whole list


Check = Callable[[ConfigValue], str | OfList | None]  # why a parsed value is refused

BOOLEAN, INT, SHORT, LONG, DOUBLE, STRING, LIST = "BOOLEAN", "INT", "SHORT", "LONG", "DOUBLE", "STRING", "LIST"
PASSWORD = "PASSWORD"  # or a key: nobody is shown its value

BITS = {SHORT: 16, INT: 32, LONG: 64}
# DescribeConfigs' numbers for types.
TYPE_NUMBERS = {BOOLEAN: 1, STRING: 2, INT: 3, SHORT: 4, LONG: 5, DOUBLE: 6, LIST: 7, PASSWORD: 9}
INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1


class ConfigKey(Value, frozen=True):
    name: str
    type: str  # one of TYPE_NUMBERS
    default: ConfigValue = None
    check: Check | None = None
    synonyms: tuple[tuple[str, int], ...] = ()  # (key of the node's configuration, factor to this key's unit)
    required: bool = False
    is_internal: bool = False  # for tests: it can be set, and is never shown

    def __post_init__(self) -> None:
        assert self.type in TYPE_NUMBERS
        if self.check is not None and self.default is not None and not self.required:
            assert self.check(self.default) is None, f"{self.name}: its default is not valid"
        assert all(factor > 0 for _, factor in self.synonyms)

    @property
    def is_sensitive(self) -> bool:
        return self.type == PASSWORD

    def why_invalid(self, text: str) -> str | None:
        """Why may the key not have this value? None means it may."""
        value = read_value(self.type, text)
        if value is None:
            reason: str | OfList | None = "Expected value to be either true or false"
            if self.type in (SHORT, INT, LONG, DOUBLE):
                reason = f"Not a number of type {self.type}"
        else:
            reason = self.check(value) if self.check is not None else None
        match reason:
            case OfList(reason=why, entry=None):
                return f"Configuration '{self.name}' {why}"
            case OfList(reason=why, entry=entry):
                return invalid(self.name, entry, why)
            case None:
                return None
            case why:
                return invalid(self.name, HIDDEN if self.is_sensitive else text, why)

    def is_readable(self, text: str) -> bool:
        """Is it a value of this key's type, whether the key may have it or not?"""
        return read_value(self.type, text) is not None

    def parse(self, text: str) -> ConfigValue:
        """The typed value of a text that `why_invalid` lets pass."""
        value = read_value(self.type, text)
        assert value is not None, f"{self.name}: parsed before it was checked"
        return value


HIDDEN = "[hidden]"  # Kafka's text in the place of a secret


def invalid(name: str, value: object, reason: str) -> str:
    """Kafka's sentence for a bad value."""
    return f"Invalid value {value} for configuration {name}: {reason}"


LONGEST_NUMBER = 19  # digits of the largest LONG
assert len(str(LONG_MAX)) == LONGEST_NUMBER


def read_value(kind: str, text: str) -> ConfigValue:
    """The text as a value of this type; None if it is not one."""
    assert kind in TYPE_NUMBERS
    text = text.strip()
    if kind == STRING:
        return text
    if kind == PASSWORD:
        return Secret(text)
    if kind == LIST:
        return tuple(part.strip() for part in text.split(",")) if text else ()
    if kind == BOOLEAN:
        return {"true": True, "false": False}.get(text.lower())
    if kind == DOUBLE:
        try:
            return float(text)
        except ValueError:
            return None
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"  # Python reads no more than some thousand digits, and nobody means them
    if len(digits) > LONGEST_NUMBER:  # guard: numbers-of-any-length
        return None
    number = -int(digits) if text[0] == "-" else int(digits)
    half = 1 << (BITS[kind] - 1)
    return number if -half <= number < half else None


def show_value(value: ConfigValue) -> str | None:
    """The text form that DescribeConfigs and property files have. A secret is not in it."""
    match value:
        case None:
            return None
        case Secret():
            return HIDDEN
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def at_least(low: float) -> Check:
    def check(value: ConfigValue) -> str | None:
        assert isinstance(value, int | float)
        return f"Value must be at least {low}" if value < low else None

    return check


def between(low: float, high: float) -> Check:
    assert low < high

    def check(value: ConfigValue) -> str | None:
        assert isinstance(value, int | float)
        if value < low:
            return f"Value must be at least {low}"
        return f"Value must be no more than {high}" if value > high else None

    return check


def one_of(*allowed: str) -> Check:
    assert len(set(allowed)) == len(allowed) > 0

    def check(value: ConfigValue) -> str | None:
        return None if value in allowed else f"String must be one of: {', '.join(allowed)}"

    return check


def each_of(*allowed: str, may_be_empty: bool = True) -> Check:
    """A list of distinct entries, each of them one of these, or any if none are given."""
    assert len(set(allowed)) == len(allowed)

    def check(value: ConfigValue) -> OfList | None:
        assert isinstance(value, tuple)
        if not value and not may_be_empty:
            valid = f"[{', '.join(allowed)}]" if allowed else "any non-empty value"
            return OfList(f"must not be empty. Valid values include: {valid}")
        if len(set(value)) < len(value):
            return OfList("values must not be duplicated.")
        for entry in value:
            if not entry:
                return OfList("values must not be empty.")
            if allowed and entry not in allowed:
                return OfList(f"String must be one of: {', '.join(allowed)}", entry)
        return None

    return check


distinct = each_of(may_be_empty=False)
