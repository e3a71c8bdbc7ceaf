"""Where offsets may be missing between the batches of a log: only a cleaner makes such gaps.

A log that once was compacted has its gaps for as long as it has its records, whatever its policy is now.

Invariants (executed by `check`):
  - what is cleaned, and every gap, lies below the log's end
  - a log that was never compacted has no gap
"""


class Gaps:
    def __init__(self, *, compacts: bool, cleaned_to: int | None = None) -> None:
        self.compacts = compacts
        # Where the part begins that no cleaner has seen; None: no cleaner ever works on this log.
        self.cleaned_to = 0 if compacts and cleaned_to is None else cleaned_to
        self.upto = 0  # once the log is compacted no more: no gap ends behind this offset

    @property
    def are_possible(self) -> bool:
        return self.cleaned_to is not None

    def may_precede(self, offset: int) -> bool:
        """May a batch that begins at `offset` follow after a gap? While the log is compacted, other replicas may have
        compacted more of it. After that no new gap comes: what is missing behind the last one is damage."""
        return self.are_possible and (self.compacts or offset <= self.upto)

    def may_separate(self, end: int, following: int) -> bool:
        """May one segment end at `end` and the next one begin at `following`? Only a cleaner leaves a gap there."""
        return end < following <= (self.cleaned_to or 0)

    def end(self, log_end_offset: int) -> int:
        """No gap ends behind this offset."""
        return log_end_offset if self.are_possible and self.compacts else self.upto

    def admit(self, end: int, log_start_offset: int) -> None:
        """The log is a copy of one that may have gaps up to `end`. What is here was not cleaned here."""
        assert end >= 0 and log_start_offset >= 0
        if self.cleaned_to is None:
            self.cleaned_to = log_start_offset
        self.upto = max(self.upto, end)

    def opened(self, log_end_offset: int) -> None:
        """The log was read from disk: it may have gaps anywhere."""
        assert self.upto == 0, "opened once"
        self.cut(log_end_offset)
        self.upto = log_end_offset if self.are_possible else 0

    def cut(self, log_end_offset: int) -> None:
        """The log ends here now. What comes in the place of what went has not been cleaned."""
        assert log_end_offset >= 0
        if self.cleaned_to is not None:
            self.cleaned_to = min(self.cleaned_to, log_end_offset)
        self.upto = min(self.upto, log_end_offset)

    def cleaned(self, end: int) -> None:
        """A pass of the cleaner has reached `end`."""
        assert self.cleaned_to is not None, "the log is not compacted"
        assert end >= self.cleaned_to, "a pass goes on where the last one ended"
        self.cleaned_to = end

    def reconfigure(self, *, compacts: bool, log_start_offset: int, log_end_offset: int) -> None:
        self.upto = self.end(log_end_offset)
        self.compacts = compacts
        if compacts and self.cleaned_to is None:
            self.cleaned_to = log_start_offset
        assert self.are_possible or not compacts

    def check(self, log_end_offset: int) -> None:
        assert self.upto <= log_end_offset, "a gap ends behind the log"
        if self.cleaned_to is None:
            assert self.upto == 0 and not self.compacts, "gaps in a log that was never compacted"
        else:
            assert 0 <= self.cleaned_to <= log_end_offset, "cleaned behind the log's end"
