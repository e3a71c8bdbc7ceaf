"""What is to happen to the next answers of an API."""

import threading
from difflib import get_close_matches
from types import TracebackType
from typing import Self

from strandline.base.errors import ErrorCode
from strandline.testing.answers.captured import Request
from strandline.wire.api import APIS

NAMES = tuple(api.name for api in APIS if not api.is_own)
ONLY_THE_NODE_KNOWS = ("Metadata", "ApiVersions", "DescribeCluster")  # an answer without brokers confuses clients


class Rule:
    """`times`: how many answers it is for; None: all until `end`. As a context manager it ends with the block."""

    def __init__(
        self,
        api: str,
        *,
        error: ErrorCode | None = None,
        delay_s: float = 0.0,
        is_lost: bool = False,
        closes: bool = False,
        times: int | None = 1,
        client_id: str | None = None,
        node: int | None = None,
        performed: bool = False,
    ) -> None:
        """`performed`: does the node get the request?"""
        self.api = known_api(api)
        self.error = error
        self.delay_s = delay_s
        self.is_lost = is_lost
        self.closes = closes
        self.left = times
        self.client_id = client_id
        self.node = node
        self.performed = performed or self.api in ONLY_THE_NODE_KNOWS
        self.seen: list[Request] = []  # the requests that it was applied to

    def fits(self, request: Request) -> bool:
        return (
            self.api == request.api
            and self.client_id in (None, request.client_id)
            and self.node in (None, request.node)
        )

    def take(self, request: Request) -> None:
        assert self.left != 0
        self.seen.append(request)
        if self.left is not None:
            self.left -= 1

    def end(self) -> None:
        self.left = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


class Rules:
    """Of several that fit, the oldest counts."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rules: list[Rule] = []

    def add(self, rule: Rule) -> Rule:
        with self.lock:
            self.rules.append(rule)
        return rule

    def take(self, request: Request) -> Rule | None:
        """The rule for this request, if there is one; it is used up by that."""
        with self.lock:
            self.rules = [rule for rule in self.rules if rule.left != 0]
            rule = next((rule for rule in self.rules if rule.fits(request)), None)
            if rule is not None:
                rule.take(request)
            return rule


def known_api(name: str) -> str:
    """Raises ValueError."""
    if name in NAMES:
        return name
    close = get_close_matches(name, NAMES, 1)
    raise ValueError(f"'{name}' is not an API{f'; is {close[0]} meant?' if close else ''}")


def known_error(error: str | int) -> ErrorCode:
    """By name or number. Raises ValueError."""
    try:
        return ErrorCode[error] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, ValueError):
        close = get_close_matches(str(error), ErrorCode.__members__, 1)
        raise ValueError(f"'{error}' is not an error{f'; is {close[0]} meant?' if close else ''}") from None
