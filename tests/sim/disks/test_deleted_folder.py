"""Somebody deletes a partition's folder under a running process: what that does, and what the laws make of it."""

from collections.abc import Callable

import pytest
from tests.sim.laws.test_laws import hosted_on, of_leader, other
from tests.sim.play import ORDERS, SETTINGS, Play

from strandline.base.ports import DiskError
from strandline.log.log import Log
from strandline.replica.hosting.host import Host
from strandline.sim.faults.damaged import tamper
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.laws.logs.truth import Truth
from strandline.sim.laws.partitions.partitions import Seen
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.sim.world.violation import Violation

ROLLING = SETTINGS | {"log.roll.ms": "500"}
RARELY = {"log.flush.offset.checkpoint.interval.ms": "900000", "log.scrub.max.bytes.per.second": "0"}


def playing(**settings: str) -> Play:
    """With old segments, whose files nobody has open."""
    play = Play(options=Options(settings=ROLLING | settings, log_dirs=2))
    play.run(3000)
    return play


def delete_folder(play: Play, machine: Machine) -> None:
    tamper(FaultInjector(play.world, play.admin), machine, {hosted_on(machine).log.directory: None}, takes_records=True)


def forget_what_is_open(log: Log) -> None:
    log.tail.clear()
    for segment in log.segments:
        log.segments.warm = None
        log.segments.rest(segment)


def a_leader(play: Play) -> Machine:
    return of_leader(play)[0]


@pytest.mark.parametrize("who", [other, a_leader])
def test_the_directory_goes_offline_with_a_line_that_names_the_file_and_nothing_is_lost(
    who: Callable[[Play], Machine],
) -> None:
    play = playing()
    machine = who(play)
    root, _, _ = hosted_on(machine).log.directory.rpartition("/")
    delete_folder(play, machine)
    play.run(3000)
    assert machine.is_running
    (line,) = [line for line in play.world.story if f"the log directory {root} is offline" in line]
    assert f"{root}/{ORDERS.topic}-{ORDERS.partition}/" in line
    play.end()


def test_no_law_reads_what_is_gone_before_the_process_knows_it() -> None:
    play = playing(**RARELY)
    machine = other(play)
    hosted, laws = hosted_on(machine), play.world.laws.partitions
    assert len(hosted.log.segments) > 2
    forget_what_is_open(hosted.log)
    delete_folder(play, machine)
    assert machine.has_lost(hosted)
    with pytest.raises(DiskError):
        laws.truths[hosted.at].differs(hosted.log, 0, hosted.log.segments[1].base_offset)
    laws.agrees(machine, hosted, laws.truths[hosted.at], Seen(), hosted.high_watermark)


def test_what_only_a_leader_without_its_folder_could_show_is_a_hole_in_what_is_known() -> None:
    play = playing(**RARELY)
    machine, hosted, leader = of_leader(play)
    laws = play.world.laws.partitions
    forget_what_is_open(hosted.log)
    known = Seen()
    known.epoch, known.partition_epoch = leader.epoch, leader.partition_epoch
    known.high_watermark = leader.high_watermark
    laws.truths[hosted.at] = Truth(0)
    delete_folder(play, machine)
    laws.look_at_leader(machine, hosted, leader, known)
    assert laws.truths[hosted.at].is_hole(0, leader.high_watermark)


def test_a_log_that_is_gone_without_anybody_deleting_it_is_noticed() -> None:
    play = playing(**RARELY)
    machine, hosted, leader = of_leader(play)
    forget_what_is_open(hosted.log)
    play.world.laws.partitions.truths[hosted.at] = Truth(0)
    machine.disk.tamper(hosted.log.directory, None)
    with pytest.raises(DiskError):
        play.world.laws.partitions.look_at_leader(machine, hosted, leader, Seen())


def test_a_node_that_ends_over_an_error_that_somebody_should_have_handled_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nobody_handles_it(host: Host, log_dir: object, error: DiskError) -> None:
        raise error

    play = playing()
    machine = other(play)
    monkeypatch.setattr(Host, "fail", nobody_handles_it)
    machine.disk.fail("/d0")
    with pytest.raises(Violation, match=f"{machine.name} has .*'/d1'.*, and ends over /d0/"):
        play.run(8000)


def test_over_its_last_directory_it_may_end() -> None:
    play = Play()
    machine = other(play)
    machine.disk.fail(*machine.log_dirs)
    play.run(8000)
    assert not machine.is_running
    play.end()
