"""What numba keeps on disk is never why something fails."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba")

LOOP = """
from strandline_spark.decode.caching import compiled

@compiled
def twice(number):
    return 2 * number
"""

Load = Callable[[], Any]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """The function as another process would have it: its module is executed once more."""
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    monkeypatch.setattr("numba.config.CACHE_DIR", "")

    def loaded() -> Any:
        spec = importlib.util.spec_from_file_location("loop", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.twice

    return loaded


def is_cached(twice: Any) -> bool:
    assert twice(21) == 42
    return bool(twice.stats.cache_hits)


def test_a_second_process_takes_what_the_first_has_compiled(load: Load) -> None:
    assert [is_cached(load()) for _ in range(2)] == [False, True]


@pytest.mark.parametrize("files", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("size", [0, 20])
def test_a_file_that_was_left_short_is_compiled_anew_and_mended(
    load: Load, tmp_path: Path, files: str, size: int
) -> None:
    assert not is_cached(load())
    short = list(tmp_path.rglob(files))
    assert short
    for path in short:
        path.write_bytes(path.read_bytes()[:size])
    assert [is_cached(load()) for _ in range(2)] == [False, True]


def test_a_folder_that_cannot_be_written_any_more_costs_time_alone(load: Load, tmp_path: Path) -> None:
    twice = load()
    for path in tmp_path.rglob("__pycache__/*"):
        path.unlink()
    (tmp_path / "__pycache__").rmdir()
    (tmp_path / "__pycache__").touch()
    assert not is_cached(twice)
