"""`strandline bench scale`: what it refuses, and how it says growth."""

from pathlib import Path

import msgspec
import pytest

from strandline.bench.scale_steps import Scaled, Step, fenced_at
from strandline.cli.lab.scale import as_json, cell, growth, sizes_of, table_of
from strandline.testing.local_cluster import NodeProcess


def scaled(partitions: int, cpu_s: float) -> Scaled:
    step = Step(1.0, cpu_s, 0.25)
    steps = {field.name: step for field in msgspec.structs.fields(Scaled) if field.type is Step}
    return Scaled(
        partitions=partitions,
        topics=1,
        kib_per_partition=7.0,
        open_files=1,
        idle_percent=0.1,
        detected_s=0.1,
        controller_s=0.1,
        **steps,
    )


def test_sizes_are_numbers_with_commas_between() -> None:
    assert sizes_of("250,1000") == [250, 1000]


@pytest.mark.parametrize("text", ["", "many", "10,,20", "0", "-5", "10,10"])
def test_other_sizes_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        sizes_of(text)
    assert stopped.value.code == 2
    assert "--partitions needs" in capsys.readouterr().err


@pytest.mark.parametrize(("before", "after", "power"), [(1.0, 10.0, 1.0), (1.0, 100.0, 2.0), (3.0, 3.0, 0.0)])
def test_growth_is_the_power_of_the_number_of_partitions(before: float, after: float, power: float) -> None:
    results = [scaled(1000, after), scaled(100, before)]
    assert growth(results, "create") == power
    assert as_json(results)["growth"]["leaders"] == power


def test_one_size_or_no_time_at_all_has_no_growth() -> None:
    assert growth([scaled(100, 1.0)], "create") is None
    assert growth([scaled(100, 0.0), scaled(1000, 1.0)], "create") is None


def test_a_narrow_terminal_keeps_the_largest_number_of_partitions_and_the_growth() -> None:
    table = table_of([scaled(size, 1.0 + size) for size in (250, 1000, 4000)])
    shown = {width: [table.columns[i].title for i in table.fitting(width)][1:] for width in (60, 110)}
    assert shown == {60: ["4,000", "growth"], 110: ["250", "1,000", "4,000", "growth"]}


def test_a_step_has_its_processor_time_and_how_long_a_node_was_deaf() -> None:
    assert cell(Step(1.234, 2.0, 0.056)) == "1.23 (2.00; 0.06)"


def test_when_a_broker_was_fenced_last_stands_in_the_controllers_log(tmp_path: Path) -> None:
    controller, other = NodeProcess(1, tmp_path, 1, 2), NodeProcess(3, tmp_path, 3, 4)
    controller.log_path.write_text(
        "2026-11-21 13:00:00.250 WARNING broker 3 is fenced: no heartbeat for 9000 ms\n"
        "2026-11-21 13:00:01.000 WARNING broker 2 is fenced: no process listens at its endpoint\n"
        "2026-11-21 13:00:02.750 WARNING broker 3 is fenced: no process listens at its endpoint\n"
    )
    assert fenced_at(controller, other) % 10 == pytest.approx(2.75)
