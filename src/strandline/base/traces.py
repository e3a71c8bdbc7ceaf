"""What the log says about an exception. A client may have chosen its text: that is cut, and stays in one line."""

import traceback
from collections.abc import Iterator

TEXT_SHOWN = 300
CAUSES_MAX = 10
# AlterConfigs, SaslAuthenticate, IncrementalAlterConfigs, AlterUserScramCredentials: passwords are in them.
SECRET_APIS = frozenset({33, 36, 44, 51})
HIDDEN = "[hidden]"


def trace_of(error: BaseException, *, hides: bool) -> str:
    """The cause first, as Python prints it. `hides`: texts may have secrets."""
    parts = [
        "".join(traceback.format_tb(one.__traceback__)) + said(one, hides=hides) for one in (error, *causes(error))
    ]
    return "\nwhich led to:\n".join(reversed(parts))


def causes(error: BaseException) -> Iterator[BaseException]:
    for _ in range(CAUSES_MAX):
        cause = error.__cause__ if error.__cause__ is not None or error.__suppress_context__ else error.__context__
        if cause is None:
            return
        error = cause
        yield error


def said(error: BaseException, *, hides: bool) -> str:
    return f"{type(error).__name__}: {HIDDEN if hides else text_of(error)}"


def text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        return "it has no text"
    cut = text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]}…"
    return "".join(letter if letter.isprintable() else "?" for letter in cut)
