"""Runs of a lane that are killed, come back, overlap and lose their connection, beside a naive leader: the partition
always holds the lane's first rows, each once, in order; and in the end all of them."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from spark.tests.unit.emit.broker import MODULO, Leader, Process, finish, rows_in
from tests.rows import each


def stay_in_order(leader: Leader, base: int = 0) -> None:
    rows = rows_in(leader)
    assert rows == list(range(base, base + len(rows)))


def act(random: Random, leader: Leader, processes: list[Process]) -> None:
    process = random.choice(processes)
    action = random.randrange(10)
    if action < 3:
        process.offer()
    elif action < 6:
        process.deliver()
    elif action == 6:
        leader.replicate(random.randint(0, leader.end))
        for other in processes:
            other.answer()
    elif action == 7:
        leader.show()
    elif action == 8:
        process.do_search()
    else:
        upset(random, leader, processes)


def upset(random: Random, leader: Leader, processes: list[Process]) -> None:
    what = random.randrange(4)
    if what == 0:
        random.choice(processes).reconnect()
    elif what == 1:
        leader.append(99, len(leader.log), (0,))  # somebody else writes to the topic
    elif what == 2:
        leader.change(random)
        for process in processes:
            process.reconnect()
    else:
        processes[-1].dead = random.random() < 0.5  # or only thought dead
        processes.append(Process(random, leader, processes[-1].rows, base=processes[-1].base))


@settings(max_examples=600, deadline=None)
@given(st.integers(0, 1 << 40), st.integers(1, 60), st.integers(5, 300))
def test_whatever_happens_each_row_is_there_once_and_in_order(seed: int, rows: int, steps: int) -> None:
    random = Random(seed)
    leader = Leader()
    processes = [Process(random, leader, rows)]
    for _ in range(steps):
        act(random, leader, processes)
        stay_in_order(leader)
    finish(leader, processes[-1])
    assert [process.failed for process in processes] == [None] * len(processes)
    assert rows_in(leader) == list(range(rows))
    for process in processes:  # what the earlier ones still have under way comes late
        process.reconnect()
        while any([process.channel, *process.old_channels]):
            process.deliver()
    assert rows_in(leader) == list(range(rows))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 40), st.integers(5, 200))
def test_sequences_wrap_behind_the_largest(seed: int, steps: int) -> None:
    random = Random(seed)
    leader = Leader()
    base = MODULO - 10
    processes = [Process(random, leader, base + 30, base=base, read=base)]
    for _ in range(steps):
        process = processes[0]
        random.choice([process.offer, process.deliver, process.do_search, process.reconnect])()
        leader.replicate(leader.end)
        leader.show()
        process.answer()
        stay_in_order(leader, base)
    finish(leader, processes[0])
    assert rows_in(leader) == list(range(base, base + 30))
    assert {batch.sequence for batch in leader.log} & set(range(30)), "it wrapped"


def arrive(process: Process) -> None:
    while process.channel:
        process.deliver()


@each("arrives", ["never", "before the search", "after the search", "at the end"])
@each("seed", range(3))
def test_a_kill_at_every_step(arrives: str, seed: int) -> None:
    """What was under way at the kill reaches the leader at the worst times."""
    for kill_at in range(60):
        random = Random(seed)
        leader = Leader()
        first = Process(random, leader, 40)
        for step in range(kill_at):
            [first.offer, first.deliver, first.answer, first.do_search][step % 4]()
            leader.replicate(leader.end if step % 3 == 0 else 0)
            leader.show()
        first.dead = True
        if arrives == "before the search":
            arrive(first)
        second = Process(random, leader, 40)
        if arrives == "after the search":
            second.offer()
            arrive(first)
        finish(leader, second)
        if arrives == "at the end":
            arrive(first)
        assert second.failed is None
        assert rows_in(leader) == list(range(40)), kill_at
