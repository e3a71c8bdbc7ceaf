"""A naive log makes histories that have no anomaly; damage done to it is found."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each
from tests.unit.history.making import KEY, assign, poll, send

from strandline.history.judge import judge
from strandline.history.operation import Operation, Outcome
from strandline.history.policy import Facts


def play(seed: int, steps: int) -> tuple[list[str], list[Operation]]:
    """Writers and readers of one right log, to the end; the log, and what they saw."""
    rng = Random(seed)
    log: list[str] = []
    history: list[Operation] = []
    positions = {"c1": 0, "c2": 0}
    for step in range(steps):
        process = rng.choice(("p", "q"))
        value = f"{process}{step}"
        match rng.randrange(6):
            case 0:
                history.append(send(process, value, outcome=Outcome.FAIL))
            case 1:
                history.append(send(process, value, outcome=Outcome.UNKNOWN))
                if rng.randrange(2):
                    log.append(value)
            case 2 | 3:
                history.append(send(process, value, at=len(log)))
                log.append(value)
            case 4:
                reader = rng.choice(list(positions))
                read(log, history, positions, reader, rng.randrange(1, 5))
            case _ if rng.randrange(4) == 0:
                reader = rng.choice(list(positions))
                history.append(assign(reader))
                positions[reader] = 0
    for reader in positions:
        read(log, history, positions, reader, len(log))
    return log, history


def read(log: list[str], history: list[Operation], positions: dict[str, int], reader: str, count: int) -> None:
    start = positions[reader]
    found = [(start + i, value) for i, value in enumerate(log[start : start + count])]
    if found:
        history.append(poll(reader, *found))
        positions[reader] = found[-1][0] + 1


@given(st.integers(0, 1 << 32), st.integers(0, 60))
def test_a_right_log_has_no_anomaly(seed: int, steps: int) -> None:
    assert judge(play(seed, steps)[1], Facts()).violations == ()


@each("seed", range(30))
def test_a_record_that_disappears_after_it_was_acknowledged_is_missed(seed: int) -> None:
    log, history = play(seed, 60)
    acked = [w for op in history if op.outcome is Outcome.OK for w in op.writes]
    victim = Random(seed).choice(acked[:-1])
    later = [(offset, value) for offset, value in enumerate(log) if offset != victim.offset]
    history += [assign("late"), poll("late", *later)]
    if victim.offset == 0:
        return  # a reader may begin behind it: nothing is proved
    judgement = judge(history, Facts())
    assert "lost-write" in {a.name for a in judgement.violations if a.values == (victim.value,)}
    assert judge(history, Facts(exceeded=(KEY,))).violations == () or {
        a.name for a in judge(history, Facts(exceeded=(KEY,))).violations
    } == {"int-poll-skip"}


@each("seed", range(30))
def test_a_record_that_another_replaces_is_noticed(seed: int) -> None:
    log, history = play(seed, 60)
    offset = Random(seed).randrange(len(log))
    other = [(i, "impostor" if i == offset else value) for i, value in enumerate(log)]
    history += [assign("late"), poll("late", *other)]
    assert "inconsistent-offsets" in {anomaly.name for anomaly in judge(history, Facts()).violations}
