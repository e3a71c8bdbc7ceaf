"""Numbers of batches add up, and show where offsets are missing or duplicated."""

from strandline_spark.tables.account import Account, Span


def of(first: int, end: int, records: int | None = None, partition: int = 0, **numbers: int) -> Account:
    span = Span(first, end, end - first if records is None else records)
    return Account(spans={"t": {partition: span}}, **numbers)


def test_batches_that_follow_one_another_are_dense() -> None:
    whole = of(5, 10, rows=5).plus(of(10, 12, rows=2)).plus(of(0, 3, partition=1))
    assert whole.is_dense is True
    assert whole.ends == {"t": {0: 12, 1: 3}}
    assert whole.rows == 7


def test_the_order_of_adding_does_not_matter() -> None:
    one, other = of(0, 5, quarantined=2), Account(spans={"u": {3: Span(1, 2, 1)}}, failed={"x": 1})
    assert one.plus(other) == other.plus(one)


def test_a_gap_and_a_repetition_are_not_dense() -> None:
    assert of(0, 5).plus(of(6, 8)).is_dense is False
    assert of(0, 5).plus(of(4, 8)).is_dense is False
    assert of(0, 5).plus(of(6, 8)).spans["t"][0].missing == 1
    assert of(0, 5).plus(of(4, 8)).spans["t"][0].missing == -1


def test_where_sql_leaves_records_out_a_gap_says_nothing_but_a_repetition_does() -> None:
    assert of(0, 5, records=3, filtered=2).is_dense is None
    assert of(0, 5, records=7, filtered=2).is_dense is False


def test_nothing_is_dense() -> None:
    assert Account().is_dense is True
    assert Account().ends == {}
