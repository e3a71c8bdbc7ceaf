"""The audit, histories, and the demonstration that ends with an audit."""

from typing import Annotated, Literal, TypedDict

from strandline.cli.printed.words import Partition, Topic, says


class AuditFinding(TypedDict):
    """Something that the audit found."""

    rule: Annotated[str, says("docs/audit.md lists them")]
    severity: Literal["error", "warning"]
    topic: Topic
    partition: Partition
    broker: Annotated[int | None, says("null: several, or nobody knows which; -1: its directory does not say")]
    offset: Annotated[int, says("the first offset")]
    end: Annotated[int, says("the offset after the last")]
    what: str


class AuditTotals(TypedDict):
    """What the audit read."""

    replicas: int
    partitions: int
    brokers: int
    bytes: int
    batches: int
    records: int


class Audited(TypedDict):
    """An audit of all replicas."""

    status: Annotated[Literal["clean", "findings", "incomplete"], says("incomplete: something could not be read")]
    verdict: Annotated[str, says("the same in words")]
    findings: Annotated[list[AuditFinding], says("the first --limit of each rule")]
    counts: Annotated[dict[str, int], says("all findings, by rule")]
    totals: AuditTotals
    acknowledged: Annotated[int | None, says("acknowledged records that were looked for; null without --acknowledged")]
    unread: Annotated[list[str], says("what could not be read, and why")]
    losses: Annotated[int, says("entries of the loss ledger, at most 200")]


class PipelineShown(TypedDict):
    """Events became a table while a leader and `ingest` were killed."""

    acknowledged: int
    rows: Annotated[int, says("in the table")]
    quarantined: int
    duplicates: int
    missing: Annotated[int, says("acknowledged events that are neither in the table nor in quarantine")]
    interruption_s: Annotated[float, says("the longest time without an acknowledgement")]
    audit: Audited
    holds: Annotated[bool, says("every acknowledged event is there once, and the audit is clean")]


class JudgedRow(TypedDict):
    """An anomaly, or a problem: what could not be judged. The fields of the one are null in the other."""

    run: str
    topic: Annotated[str, says("empty: a problem of no one partition")]
    topic_id: str
    partition: Annotated[int, says("-1: a problem of no one partition")]
    name: Annotated[str | None, says("the anomaly's, Jepsen's")]
    tolerated: Annotated[str | None, says("null: only anomalies that nothing excuses are listed")]
    text: str | None
    offsets: list[int] | None
    values: Annotated[list[str] | None, says("base64")]
    writers: Annotated[list[str] | None, says("operations that wrote them")]
    readers: Annotated[list[str] | None, says("operations that read them")]
    was_committed: bool | None
    proved_ms: Annotated[int | None, says("null also if it is proved only at the end")]
    operations: Annotated[int | None, says("always null here")]
    writes: Annotated[int | None, says("always null here")]
    reads: Annotated[int | None, says("always null here")]
    problem: str | None
    lines: Annotated[int | None, says("that have the problem")]


class HistoriesJudged(TypedDict):
    """The judgement over recorded histories."""

    runs: int
    keys: Annotated[int, says("partitions, each in its run")]
    operations: Annotated[int, says("one on several partitions counts in each")]
    writes: int
    reads: int
    violations: Annotated[dict[str, int], says("anomalies that nothing excuses, by name")]
    tolerated: Annotated[dict[str, dict[str, int]], says("anomalies, by the reason that excuses them and by name")]
    first: Annotated[list[JudgedRow], says("anomalies that nothing excuses, at most 20")]
    problems: Annotated[list[JudgedRow], says("at most 20")]
    bad_lines: Annotated[int, says("lines that could not be judged")]
