"""What a user did wrong, or must know before a job can go on; and what Spark's long errors say in one sentence."""

import re

from strandline.client.errors import BadOption, StrandlineError

__all__ = ["BadOption", "BadRow", "DataLoss", "Missing", "Overtaken", "StrandlineError", "sentence_of"]

# Those of other modules' names are not recognised: whatever is raised in Spark's processes is in one called `errors`.
REASON = re.compile(r"strandline(?:_spark)?\.(?:\w+\.)*errors\.\w+: (?P<problem>.*?)(?:\n  (?P<advice>\S.*?))?(?:\n|$)")

JAVA_NAME = re.compile(r"^:?\s*(?:[a-z]\w*\.)+\w+(?:Exception|Error):\s*")


class Missing(StrandlineError):
    """A topic or partition that was asked for by name and does not exist."""


class BadRow(StrandlineError):
    """A row that cannot be written: the message says which one of its task."""


class Overtaken(StrandlineError):
    """Somebody else has changed a table in between: nothing of ours is in it, unless a catalog could not say it took
    it."""


class DataLoss(StrandlineError):
    """Records that were asked for are there no longer, or are others now (failOnDataLoss=true)."""


def sentence_of(error: BaseException) -> StrandlineError:
    """What went wrong, for people: our own words where they are in it, else the first line of Spark's."""
    if isinstance(error, StrandlineError):
        return error
    text = str(error)
    found = list(REASON.finditer(text))
    if found:
        return StrandlineError(found[-1]["problem"], found[-1]["advice"] or "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]  # py4j names an object of its own; what happened stands in the second line
    return StrandlineError(JAVA_NAME.sub("", lines[0]) if lines else type(error).__name__)
