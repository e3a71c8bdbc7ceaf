"""Which backend runs, what it says, and that compiled code stays within its arrays."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from spark.tests.sources import environment

from strandline_spark.decode import backends

FUZZ = """
import random
from strandline_spark.decode import Columns, Corrupt, Origin, decode_heads, walk
from strandline_spark.decode.columns import TYPES
from strandline_spark.decode.decoding import check_headers
from strandline.wire.batch import build
columns, origin, rng = Columns.of(["key", "value", "headers", "offset", "timestamp"]), Origin("t", 0), random.Random(7)
sound = build([(5 * i, b"k" * i, b"v" * 40 * i, [("h" * i, b"x")] * (i % 3)) for i in range(12)])
read = refused = 0
for _ in range(8_000):
    batch = bytearray(sound)
    for _ in range(rng.randrange(1, 6)):
        batch[rng.randrange(len(batch))] = rng.choice((0, 1, 127, 128, 254, 255, rng.randrange(256)))
    del batch[len(batch) - rng.randrange(3) :]
    table = walk(batch).table
    try:
        check_headers(table, origin)
        for rows in decode_heads(batch, table, columns, origin):
            rows.validate(full=True)
        read += 1
    except Corrupt:
        refused += 1
print(read > 100, refused > 100)
"""


def test_compiled_code_reads_and_writes_within_its_arrays(tmp_path: Path) -> None:
    """numba checks every index here, and what leaves the arrays ends the process."""
    checked = {**environment(), "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", FUZZ]
    run = subprocess.run(command, env=checked, capture_output=True, text=True, timeout=100, check=False)
    assert (run.stdout, run.stderr) == ("True True\n", "")


def test_without_numba_a_warning_names_the_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    for name in ("kernel", "caching"):
        monkeypatch.delitem(sys.modules, f"strandline_spark.decode.{name}", raising=False)
    backends.backend.cache_clear()
    try:
        with pytest.warns(backends.SlowDecoding, match="20 to 45 times slower"):
            assert backends.backend() == "python"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert backends.backend() == "python"  # and says so once
    finally:
        backends.backend.cache_clear()


def test_python_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(backends.CHOICE, "python")
    backends.backend.cache_clear()
    try:
        assert backends.backend() == "python"
    finally:
        backends.backend.cache_clear()


HEADERS_ALONE = """
import sys
from strandline_spark.decode import walk
from strandline.wire.batch import build
large, small = build([(1, None, bytes(5000), [])]), build([(1, None, b"", [])])
assert len(walk(large * 3).table) == 3
print("numba" in sys.modules)
assert len(walk(small * 3).table) == 3
print("numba" in sys.modules)
"""


def test_numba_is_not_loaded_for_the_headers_of_large_batches() -> None:
    command = [sys.executable, "-c", HEADERS_ALONE]
    run = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert (run.stdout, run.stderr) == ("False\nTrue\n", "")
