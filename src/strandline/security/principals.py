"""`ssl.principal.mapping.rules`: which user name the subject of a client's certificate becomes.

Rules are tried in order, and the first whose pattern matches the whole text decides:

    RULE:pattern/replacement/[LU]    `$1` in the replacement is the pattern's first group; L: lower case, U: upper case
    DEFAULT                          the text itself

Patterns are Python's regular expressions, which agree with Java's in what such rules use. In a pattern or a replacement
a backslash stands before each slash that does not end it.
"""

import re
from collections.abc import Callable

from strandline.base.value import Value

DEFAULT = "DEFAULT"
PART = r"((?:\\.|[^\\/])*)"
RULE = re.compile(rf"\s*(?:(DEFAULT)|RULE:{PART}/{PART}/([LU]?))\s*(?:,\s*|$)", re.DOTALL)
REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)
CASES: dict[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}


class BadRule(Exception):
    """A text that is not a list of rules."""


class Rule(Value, frozen=True):
    pattern: str
    replacement: str
    case: str  # a key of CASES

    def apply(self, name: str) -> str | None:
        """None: it does not match."""
        if re.fullmatch(self.pattern, name) is None:
            return None
        return CASES[self.case](re.sub(self.pattern, lambda match: expanded(self.replacement, match), name))


def expanded(replacement: str, match: re.Match[str]) -> str:
    """With the groups of the match. Of several digits as many count as there are groups for; `$9` without a ninth group
    is a text like any other."""

    def one(found: re.Match[str]) -> str:
        letter, digits = found.groups()
        if letter is not None:
            return str(letter)
        count = match.re.groups
        used = len(digits)
        while used and int(digits[:used]) > count:
            used -= 1
        return f"${digits}" if not used else (match.group(int(digits[:used])) or "") + digits[used:]

    return REFERENCE.sub(one, replacement)


class Mapping(Value, frozen=True):
    rules: tuple[Rule | None, ...]  # None: DEFAULT

    def name_of(self, subject: str) -> str | None:
        """The user's name; None if no rule matches."""
        for rule in self.rules:
            name = subject if rule is None else rule.apply(subject)
            if name is not None:
                return name
        return None


def mapping_of(text: str) -> Mapping:
    """Raises BadRule."""
    rules: list[Rule | None] = []
    at = 0
    while at < len(text.rstrip()):
        match = RULE.match(text, at)
        if match is None:
            raise BadRule(f"'{text[at:].strip()}' is neither {DEFAULT} nor RULE:pattern/replacement/[LU]")
        rules.append(rule_of(match))
        at = match.end()
    return Mapping(tuple(rules) or (None,))


def rule_of(match: re.Match[str]) -> Rule | None:
    default, pattern, replacement, case = match.groups()
    if default:
        return None
    try:
        re.compile(pattern)
    except re.error as error:
        raise BadRule(f"'{pattern}' is not a regular expression: {error}") from None
    return Rule(pattern, replacement, case)
