"""Why replicas' logs could not be read. (Spark's errors are searched for the words of modules with this name.)"""

from strandline.pipeline.errors import PipelineError


class LogChanged(PipelineError):
    """A log is not what it was when the read was planned: nothing is wrong with it, and another try may succeed."""

    def __init__(self, problem: str, advice: str = "read again: a new plan sees the log as it is now") -> None:
        super().__init__(problem, advice)


class DamagedLog(PipelineError):
    """Records that were asked for make no sense."""
