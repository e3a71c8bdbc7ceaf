"""The process from which Spark forks its Python workers on this machine: `spark.python.daemon.module`.

Spark starts such a process for each kind of work (find a data source, plan a read, run a task), and forks from it for
nearly every query. By itself each fork imports pandas, pyarrow and the data source again, which takes longer than most
of them work. Here the parent imports once. Modules that start threads are no candidates, as threads do not survive a
fork; pyarrow has one, of its allocator, which starts it again.
"""

import gc
import importlib
import os
import sys
from contextlib import suppress

from pyspark import daemon

WORKER = "pyspark.worker"  # runs tasks; other modules plan them
ALL = ("pyarrow", "pandas", "strandline_spark.topic.source", "strandline_spark.topic.batch")
OF_TASKS = ("strandline_spark.decode.decoding", "strandline_spark.topic.reading")


def preload(kind: str) -> None:
    """Import what workers of this kind need. What cannot be imported is missed by those that need it."""
    for name in (kind, *ALL, *(OF_TASKS if kind == WORKER else ())):
        with suppress(ImportError):
            importlib.import_module(name)
    os.register_at_fork(after_in_child=draw_seed)
    gc.freeze()  # a collection in a worker would copy the pages of all these modules


def draw_seed() -> None:
    """Each worker draws its own random numbers. Python's module `random` does the same by itself."""
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()


if __name__ == "__main__":
    preload(sys.argv[1] if len(sys.argv) > 1 else WORKER)
    daemon.manager()
