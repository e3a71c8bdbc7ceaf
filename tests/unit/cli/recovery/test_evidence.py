"""The demonstration's proof can fail: each thing that must not happen is seen."""

from pathlib import Path

import pytest

from strandline.demo.evidence import are_logs_equal, digest_log, interruption, judge
from strandline.wire.batch import build


def test_everything_in_its_place_holds() -> None:
    verdict = judge({(0, 0): 1, (0, 1): 2, (1, 0): 3}, [((0, 0), 1), ((1, 0), 3), ((0, 1), 2)])
    assert verdict.holds
    assert (verdict.acknowledged, verdict.read) == (3, 3)


def test_a_record_that_was_read_but_never_acknowledged_is_no_loss() -> None:
    assert judge({}, [((0, 0), 1)]).holds


def test_a_missing_record_is_lost() -> None:
    verdict = judge({(0, 0): 1, (0, 1): 2}, [((0, 0), 1)])
    assert verdict.lost == ((0, 1),)
    assert not verdict.holds


def test_another_record_at_an_acknowledged_place_is_a_loss() -> None:
    assert judge({(0, 0): 1}, [((0, 0), 9)]).lost == ((0, 0),)


def test_a_record_read_twice_is_a_duplicate() -> None:
    verdict = judge({(0, 0): 1}, [((0, 0), 1), ((0, 1), 1)])
    assert (verdict.duplicates, verdict.holds) == (1, False)


def test_order_is_per_partition() -> None:
    assert judge({}, [((0, 0), 5), ((1, 0), 2), ((0, 1), 6)]).holds
    verdict = judge({}, [((0, 0), 5), ((0, 1), 4)])
    assert verdict.misplaced == ((0, 1),)


def batch(base_offset: int, value: bytes) -> bytes:
    return build([(1, None, value, ()), (2, None, value, ())], base_offset=base_offset, leader_epoch=0)


def test_logs_are_compared_up_to_the_high_watermark(tmp_path: Path) -> None:
    for name, tail in (("a", b"one"), ("b", b"two")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "00000000000000000000.log").write_bytes(batch(0, b"same"))
        (folder / "00000000000000000002.log").write_bytes(batch(2, b"same") + batch(4, tail))
    a, b = tmp_path / "a", tmp_path / "b"
    assert digest_log(a, 4) == digest_log(b, 4)
    assert digest_log(a, 4).size == 2 * len(batch(0, b"same"))
    assert digest_log(a, 6) != digest_log(b, 6)


def test_logs_that_are_equally_short_or_absent_are_no_proof(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(batch(0, b"a") + batch(2, b"b"))
    whole, absent = digest_log(tmp_path, 4), digest_log(tmp_path / "nowhere", 4)
    assert are_logs_equal([whole, whole], 4)
    assert not are_logs_equal([whole, whole], 6)
    assert not are_logs_equal([absent, absent], 4)
    assert not are_logs_equal([], 0)


def test_a_log_ends_at_its_first_hole(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(batch(0, b"a"))
    (tmp_path / "00000000000000000004.log").write_bytes(batch(4, b"c"))
    assert digest_log(tmp_path, 6).end_offset == 2


ACKNOWLEDGED = [4.0, 1.0, 2.0, 2.5, 9.0, 9.5]


@pytest.mark.parametrize(
    ("start", "until", "longest"),
    [
        (2.2, 3.0, 1.5),  # begins within the span, ends beyond it
        (3.0, 5.0, 5.0),  # goes on long after the span: counts whole
        (1.1, 1.9, 1.0),  # touches the span from both sides
        (1.0, 2.2, 1.0),  # the long one begins too late to count
    ],
)
def test_an_interruption_counts_whole_when_it_touches_the_span(start: float, until: float, longest: float) -> None:
    assert interruption(ACKNOWLEDGED, start=start, until=until, end=10.0) == longest


def test_an_interruption_that_nothing_ended_lasts_until_the_end() -> None:
    assert interruption([1.0, 2.0], start=2.5, until=4.0, end=30.0) == 28.0
    assert interruption([], start=2.5, until=4.0, end=30.0) == 27.5
