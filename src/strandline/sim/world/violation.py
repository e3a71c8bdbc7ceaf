"""A broken law, or a node that crashed: what ends a run before its time."""


class Violation(Exception):
    """`check`: the law, in a few words; `evidence`: everything that a person needs to see it."""

    def __init__(self, check: str, evidence: str = "", at_ms: int = -1) -> None:
        super().__init__(f"{check}\n{evidence}" if evidence else check)
        self.check = check
        self.evidence = evidence
        self.at_ms = at_ms
