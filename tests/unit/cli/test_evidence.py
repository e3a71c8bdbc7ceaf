"""The demonstration's proof can fail: each thing that must not happen is seen."""

from pathlib import Path

from strandline.cli.evidence import digest_log, judge, longest_gap
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


def test_the_longest_gap_does_not_mind_the_order() -> None:
    assert longest_gap([1.0, 4.0, 2.0]) == 2.0
    assert longest_gap([1.0]) == 0.0
