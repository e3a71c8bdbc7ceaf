"""What a pipeline has done, in numbers that add up: kept in each commit, so that they survive as the rows do.

Every offset that was read is in one of four places: in the table, in quarantine, dropped by an expectation, or left
out by SQL. The first three are counted per partition; so a table is dense, or it is known where it is not.

Invariants:
  - a span's `first` is the lowest offset that was counted, `end` lies behind the highest
  - a sum of accounts does not depend on the order
"""

from msgspec import field

from strandline.base.value import Value


class Span(Value, frozen=True):
    """The offsets of one partition that were counted: `first` inclusive, `end` exclusive."""

    first: int
    end: int
    records: int  # different offsets among them

    def plus(self, other: "Span") -> "Span":
        return Span(min(self.first, other.first), max(self.end, other.end), self.records + other.records)

    @property
    def missing(self) -> int:
        """Offsets between first and end that were not counted; below zero: some were counted twice."""
        return self.end - self.first - self.records


Spans = dict[str, dict[int, Span]]  # by topic and partition


class Account(Value, frozen=True):
    """Numbers of one batch, or of all batches so far."""

    rows_in: int = 0  # records read
    rows: int = 0  # rows that the table took
    quarantined: int = 0
    dropped: int = 0
    filtered: int = 0  # records that SQL left out; below zero: it made several rows of one
    failed: dict[str, int] = field(default_factory=dict)  # rows that did not meet an expectation, by its name
    spans: Spans = field(default_factory=dict)

    def plus(self, other: "Account") -> "Account":
        return Account(
            rows_in=self.rows_in + other.rows_in,
            rows=self.rows + other.rows,
            quarantined=self.quarantined + other.quarantined,
            dropped=self.dropped + other.dropped,
            filtered=self.filtered + other.filtered,
            failed=sum_of_counts(self.failed, other.failed),
            spans=sum_of_spans(self.spans, other.spans),
        )

    @property
    def ends(self) -> dict[str, dict[int, int]]:
        """Where the next record of each partition begins, as far as rows show."""
        return {topic: {number: span.end for number, span in sorted(of.items())} for topic, of in self.spans.items()}

    @property
    def is_dense(self) -> bool | None:
        """Is every offset between each partition's first and end accounted for, once? None: SQL left records out.

        Compacted topics and transactions have gaps of their own: False says that there are gaps, not whose.
        """
        missing = [span.missing for of in self.spans.values() for span in of.values()]
        if any(count < 0 for count in missing):
            return False
        return None if self.filtered > 0 else not any(missing)


def sum_of_counts(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in [*one, *(key for key in other if key not in one)]}


def sum_of_spans(one: Spans, other: Spans) -> Spans:
    topics = sorted({*one, *other})
    return {topic: sum_of_partitions(one.get(topic, {}), other.get(topic, {})) for topic in topics}


def sum_of_partitions(one: dict[int, Span], other: dict[int, Span]) -> dict[int, Span]:
    numbers = sorted({*one, *other})
    return {
        number: one[number].plus(other[number])
        if number in one and number in other
        else one.get(number) or other[number]
        for number in numbers
    }
