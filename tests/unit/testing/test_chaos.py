"""Chaos: a seed brings the same faults again; each is repaired before the next; the seed is printed."""

import threading
from itertools import islice

import pytest

from strandline.testing.faults.chaos import Chaos, strokes
from strandline.testing.faults.fault import Fault

NAMES = ("kill", "pause", "slow")


def drawn(seed: int) -> list[object]:
    return list(islice(strokes(seed, NAMES, 3, 0.5), 50))


def test_a_seed_brings_the_same_faults_on_the_same_nodes_again() -> None:
    assert drawn(7) == drawn(7) != drawn(8)
    found = list(islice(strokes(7, NAMES, 3, 0.5), 200))
    assert {stroke.name for stroke in found} == set(NAMES)
    assert {stroke.node for stroke in found} == {1, 2, 3}
    assert all(0 <= stroke.pause_s <= 1 for stroke in found)


def test_one_thing_is_broken_at_a_time_and_everything_is_repaired_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("strandline.testing.faults.chaos.SPAN_S", (0.0, 0.001))
    broken: list[str] = []
    most, enough = 0, threading.Event()

    def breaks(name: str) -> Fault:
        nonlocal most
        broken.append(name)
        most = max(most, len(broken))
        return Fault(name, lambda: broken.remove(name))

    with Chaos(5, {name: lambda node, name=name: breaks(name) for name in NAMES}, 3, 0.001) as chaos:
        while len(chaos.story) < 20:
            enough.wait(0.001)
    assert (most, broken) == (1, [])
    assert chaos.story == list(islice(strokes(5, NAMES, 3, 0.001), len(chaos.story)))
    assert capsys.readouterr().err == "chaos(seed=5)\n"


def test_a_failure_shows_the_seed_and_what_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    made = threading.Event()

    def breaks(node: int) -> Fault:
        made.set()
        return Fault("x")

    def run() -> None:
        with Chaos(None, {"kill": breaks}, 1, 0.0) as chaos:
            made.wait(10)
            raise AssertionError(chaos.seed)

    with pytest.raises(AssertionError) as raised:
        run()
    assert f"failed under chaos(seed={raised.value.args[0]}): kill node 1" in capsys.readouterr().err


def test_a_fault_that_cannot_be_caused_or_repaired_fails_the_block() -> None:
    def breaks(node: int) -> Fault:
        raise OSError("no such node")

    with pytest.raises(OSError, match="no such node"), Chaos(1, {"kill": breaks}, 1, 0.0) as chaos:
        chaos.thread.join(10)


def test_a_fault_ends_once_and_with_its_block() -> None:
    ends: list[str] = []
    with Fault("x", lambda: ends.append("x")) as fault:
        assert not fault.is_over
    fault.end()
    assert ends == ["x"]
    assert fault.is_over
    assert Fault("over at once").is_over
