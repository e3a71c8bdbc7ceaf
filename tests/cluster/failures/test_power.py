"""Real processes that lose power: KIP-966's motivating scenario, and a short campaign of `power.py`."""

from pathlib import Path

import pytest
from tests.cluster.failures.test_hour import told


@pytest.mark.cluster
def test_last_replica_standing_acknowledged_records_vanish_without_elr_and_none_does_with_it(tmp_path: Path) -> None:
    """KIP-966, Motivation: T0 to T4."""
    html = tmp_path / "page.html"
    found = told("strandline", "demo", "last-replica", "--records", "200", "--html", str(html), "--json")
    off, on = found["elr_off"], found["elr_on"]
    # What was written between T0 and T1 was in page caches only.
    assert (off["acknowledged"], off["lost"], off["first_lost"], off["last_lost"]) == (600, 200, 200, 399)
    assert (on["acknowledged"], on["lost"], on["replaced"]) == (800, 0, 0)
    assert (off["told_lost"], on["told_lost"]) == (200, 0)
    assert [m["leader"] for m in off["moments"]] == [0, 1, 2, -1, -1, 2]
    assert [m["isr"] for m in off["moments"][2:5]] == [[2], [2], [2]]
    assert [m["leader"] for m in on["moments"]] == [0, 1, 2, -1, 1, 1]
    assert [m["isr"] for m in on["moments"][2:4]] == [[2], []]
    assert [m["elr"] for m in on["moments"][2:4]] == [[1], [1, 2]]
    assert found["holds"]
    assert "200</b>" in html.read_text()


@pytest.mark.cluster
def test_machines_that_lose_power_one_at_a_time_take_no_acknowledged_record_with_them() -> None:
    found = told("tests.cluster.power", "--cuts", "2", "--seed", "1")
    assert found["anomalies"] == 0
    assert found["faults"]["power cut that cost records"] == 2
    assert found["acknowledged with acks=all"] > 100
    assert found["of these lost"] == 0
    assert found["unclean elections"] == 0
