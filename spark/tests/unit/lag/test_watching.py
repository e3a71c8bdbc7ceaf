"""Samples at an interval, on a clock that the test moves."""

import pytest

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag.samples import Ends, Sample, sampled
from strandline_spark.jobs.lag.watching import Kept, watch


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def sample_at(now: float) -> list[Sample]:
    return [sampled(int(now * 1000), "topic", "", "t", 0, Ends(0, 1), None)]


def test_a_sample_now_and_one_each_interval_until_the_time_is_over() -> None:
    time = Time()
    made = list(
        watch(lambda: sample_at(time.now), every_s=2, for_s=5, failed=pytest.fail, clock=time.clock, sleep=time.sleep)
    )
    assert [samples[0].time_ms for samples in made] == [100_000, 102_000, 104_000]


def test_a_slow_sample_leaves_out_what_it_missed() -> None:
    time = Time()

    def slow() -> list[Sample]:
        made = sample_at(time.now)
        time.now += 2.5 if time.now == 101 else 0
        return made

    made = watch(slow, every_s=1, for_s=5, failed=pytest.fail, clock=time.clock, sleep=time.sleep)
    assert [samples[0].time_ms // 1000 for samples in made] == [100, 101, 103, 104, 105]


def test_the_first_failure_ends_it_and_a_later_one_is_reported() -> None:
    time, reported = Time(), list[StrandlineError]()

    def broken() -> list[Sample]:
        if time.now in (101.0, 102.0):
            raise StrandlineError("no leader")
        return sample_at(time.now)

    made = list(watch(broken, every_s=1, for_s=3, failed=reported.append, clock=time.clock, sleep=time.sleep))
    assert (len(made), len(reported)) == (2, 2)
    time.now = 101.0
    with pytest.raises(StrandlineError):
        list(watch(broken, every_s=1, for_s=3, failed=reported.append, clock=time.clock, sleep=time.sleep))


def test_once_is_a_duration_of_nothing() -> None:
    time = Time()
    made = watch(lambda: sample_at(1), every_s=1, for_s=0, failed=pytest.fail, clock=time.clock, sleep=time.sleep)
    assert len(list(made)) == 1


def test_of_a_long_watch_the_whole_time_is_kept_evenly_and_its_end() -> None:
    kept = Kept(100)
    for now in range(1001):
        kept.add(sample_at(now) * 3)
        kept.add([])
        assert len(kept.times) <= 34
    seconds = [sample.time_ms // 1000 for sample in kept.all()[::3]]
    assert seconds == [*range(0, 1000, 32), 1000]


def test_of_a_short_watch_all_is_kept() -> None:
    kept = Kept(100)
    for now in range(100):
        kept.add(sample_at(now))
    assert [sample.time_ms // 1000 for sample in kept.all()] == list(range(100))


def test_times_that_are_larger_than_the_bound_are_first_and_last() -> None:
    kept = Kept(0)
    for now in range(100):
        kept.add(sample_at(now))
        assert len(kept.times) <= 2
    assert [kept.all()[0].time_ms, kept.all()[-1].time_ms] == [0, 99_000]
