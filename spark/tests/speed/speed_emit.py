"""How fast the command writes a table to a topic of a node on this machine, from its start to its end:
`python -m spark.tests.speed.speed_emit [ROWS] [BYTES] [PARTITIONS] [OPTION …]`, the options being the command's.

Prints when each step ended, which the files say that it leaves in the checkpoint, and the CPU seconds of the command's
JVM, of its Python processes and of the node, which say what two idle cores could do when others use them too.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from tests.cluster.client_topics import create_topic

from strandline.testing.local_cluster import LocalCluster

DEFAULTS = (1_000_000, 1024, 4)
RUNS = 3
FILES = 4
LOOK_S = 0.1
STEPS = {"session": "lock", "staged": "plan.json", "written": "lanes/*.json", "proved": "finished.json"}


def main(rows: int, size: int, partitions: int, options: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name, LocalCluster(Path(name) / "node", 1) as nodes:
        folder = Path(name)
        make_table(folder / "table", rows, size)
        topic = create_topic(nodes.bootstrap, partitions)
        for run in range(RUNS):
            checkpoint = folder / f"checkpoint-{run}"
            where = ["--table", str(folder / "table"), "--topic", topic, "--checkpoint", str(checkpoint)]
            command = [sys.executable, "-m", "strandline", "pipeline", "emit", *where, "--bootstrap", nodes.bootstrap]
            began = time.time()
            spent = cpu_seconds([*command, *options])
            took = time.time() - began
            ended = {step: max(path.stat().st_mtime for path in checkpoint.glob(of)) for step, of in STEPS.items()}
            reported = ", ".join(f"{step} {at - began:.1f}" for step, at in ended.items())
            print(f"{run}: {took:.1f} s, {rows / took:,.0f} rows/s, {rows * size / took / 1e6:.0f} MB/s ({reported})")
            print(f"   CPU seconds {spent}")


def make_table(folder: Path, rows: int, size: int) -> None:
    """Values that neither an encoding nor a codec makes smaller."""
    folder.mkdir()
    random = np.random.default_rng(1)
    for part in range(FILES):
        count = rows // FILES
        offsets = pa.array(np.arange(count + 1, dtype=np.int32) * size)
        values = pa.BinaryArray.from_buffers(
            pa.binary(), count, [None, offsets.buffers()[1], pa.py_buffer(random.bytes(count * size))]
        )
        pq.write_table(pa.table({"value": values}), folder / f"part-{part}.parquet")


def cpu_seconds(command: list[str]) -> dict[str, float]:
    """What runs the command, and what the node does meanwhile."""
    known: dict[int, tuple[str, float, float]] = {}  # of each process: what it is, its seconds at first and at last
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        while running.poll() is None:
            for process in psutil.Process().children(recursive=True):
                try:
                    kind = "node" if "node" in process.cmdline() else process.name()
                    now = sum(process.cpu_times()[:2])
                except psutil.Error:
                    continue
                first = known[process.pid][1] if process.pid in known else now if kind == "node" else 0.0
                known[process.pid] = (kind, first, now)
            time.sleep(LOOK_S)
    assert running.returncode == 0
    kinds = sorted({kind for kind, _, _ in known.values()})
    return {kind: round(sum(last - first for of, first, last in known.values() if of == kind), 1) for kind in kinds}


if __name__ == "__main__":
    rows, size, partitions = [*map(int, sys.argv[1:4]), *DEFAULTS[len(sys.argv[1:4]) :]]
    main(rows, size, partitions, sys.argv[4:])
