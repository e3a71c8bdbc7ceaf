"""Which rows a browser is sent."""

import pytest

from strandline.console import table
from strandline.console.table import Changes, Table


def test_a_browser_that_has_seen_nothing_gets_all_rows() -> None:
    rows = Table()
    assert rows.since(0) is None
    assert rows.put({"a": 1, "b": 2})
    assert rows.since(0) == Changes(1, True, {"a": 1, "b": 2})


def test_only_rows_that_have_changed_are_sent_and_those_that_are_gone_are_named() -> None:
    rows = Table()
    rows.put({"a": 1, "b": 2, "c": 3})
    rows.put({"a": 1, "b": 5, "d": 4})
    assert rows.since(1) == Changes(2, False, {"b": 5, "d": 4}, ("c",))
    assert rows.since(2) is None
    assert not rows.put({"a": 1, "b": 5, "d": 4})
    rows.put({"a": 1, "b": 5, "d": 4, "c": 3})
    assert rows.since(1) == Changes(3, False, {"b": 5, "d": 4, "c": 3})


def test_that_there_is_nothing_is_said_once() -> None:
    rows = Table()
    assert rows.put({})
    assert not rows.put({})
    assert rows.since(0) == Changes(1, True, {})


def test_a_browser_that_has_slept_too_long_gets_all_rows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "REMEMBERED_MAX", 2)
    rows = Table()
    rows.put({"a": 1, "b": 1, "c": 1, "d": 1})
    rows.put({"d": 1})
    assert rows.since(1) == Changes(2, True, {"d": 1})
    rows.put({"d": 2})
    assert rows.since(2) == Changes(3, False, {"d": 2})
