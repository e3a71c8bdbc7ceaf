"""What the pipeline's demonstration has shown: every acknowledged event is in the table or in quarantine, once."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from strandline.base.value import Value


class Moment(Value, frozen=True):
    at_s: float  # of the Unix epoch
    what: str


class Batch(NamedTuple):
    """One batch of the table."""

    at_s: float  # of the Unix epoch
    rows: int


class Counts(Value, frozen=True):
    """The acknowledged events, counted in the table and in quarantine."""

    acknowledged: int
    rows: int
    quarantined: int
    duplicates: int
    missing: int
    by_kind: dict[str, int]

    @property
    def is_exactly_once(self) -> bool:
        return self.acknowledged > 0 and not self.duplicates and not self.missing


class DemoResult(Value, frozen=True):
    counts: Counts
    interruption_s: float  # the longest time without any acknowledgement
    moments: tuple[Moment, ...]
    written: dict[int, int]  # acknowledgements, by second
    batches: tuple[Batch, ...]
    audit: dict[str, Any]
    audit_status: int

    @property
    def holds(self) -> bool:
        return self.counts.is_exactly_once and self.audit_status == 0

    def sentence(self) -> str:
        counts = self.counts
        return (
            f"{counts.acknowledged:,} events acknowledged, {counts.rows:,} rows in the table and"
            f" {counts.quarantined:,} in quarantine, duplicates = {counts.duplicates:,}, missing = {counts.missing:,}"
        )

    def as_json(self) -> dict[str, Any]:
        counts = self.counts
        return {
            "acknowledged": counts.acknowledged,
            "rows": counts.rows,
            "quarantined": counts.quarantined,
            "duplicates": counts.duplicates,
            "missing": counts.missing,
            "interruption_s": round(self.interruption_s, 3),
            "audit": self.audit,
            "holds": self.holds,
        }


Place = tuple[int, int]  # partition and offset


def count_events(acknowledged: Path, table: Path, quarantine: Path) -> Counts:
    """Count by means that have nothing to do with what wrote the table."""
    import pyarrow.dataset

    def places(folder: Path) -> list[Place]:
        if not folder.exists():
            return []
        rows = pyarrow.dataset.dataset(str(folder), format="parquet", partitioning="hive")
        found = rows.to_table(columns=["partition", "offset"]).to_pydict()
        return list(zip(found["partition"], found["offset"], strict=True))

    kinds = pyarrow.dataset.dataset(str(table), format="parquet", partitioning="hive").to_table(["kind"])
    by_kind = {row["values"]: row["counts"] for row in kinds["kind"].value_counts().to_pylist()}
    rows, quarantined = places(table), places(quarantine)
    found = {*rows, *quarantined}
    sought = [json.loads(line) for line in acknowledged.read_text().splitlines()]
    return Counts(
        acknowledged=len(sought),
        rows=len(rows),
        quarantined=len(quarantined),
        duplicates=len(rows) + len(quarantined) - len(found),
        missing=sum((row["partition"], row["offset"]) not in found for row in sought),
        by_kind=dict(sorted(by_kind.items())),
    )
