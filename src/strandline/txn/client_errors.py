"""Errors as the version that a client speaks knows them."""

from strandline.base.errors import ErrorCode


def for_client(error: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """PRODUCER_FENCED is known since a version of each API; before, it was INVALID_PRODUCER_EPOCH."""
    is_new = error is ErrorCode.PRODUCER_FENCED and version < fenced_since
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_new else error
