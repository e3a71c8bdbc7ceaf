"""Why replicas' logs could not be read. (Spark's errors are searched for the words of modules with this name.)"""

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.base.ports import DiskError
from strandline_spark.errors import StrandlineError


class LogChanged(StrandlineError):
    """A log is not what it was when the read was planned: nothing is wrong with it, and another try may succeed."""

    def __init__(self, problem: str, advice: str = "read again: a new plan sees the log as it is now") -> None:
        super().__init__(problem, advice)


class UnreadableLog(StrandlineError):
    """What the system says when it is asked for a file that is there: its disk fails, or its owner forbids it."""

    def __init__(self, problem: str, advice: str = "check the disk, and the permissions of the file") -> None:
        super().__init__(problem, advice)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turns the system's refusals into `UnreadableLog`, but for that of a file that is gone."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableLog(f"{path}: {error.strerror or error}") from None
    except DiskError as error:  # has named the path
        raise UnreadableLog(str(error)) from None


class DamagedLog(StrandlineError):
    """Records that were asked for make no sense."""
