"""Where the tested sources are: Spark's workers and processes of tests import these, whatever is installed."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [str(ROOT / "src"), str(ROOT / "spark" / "src"), str(ROOT)]


def environment() -> dict[str, str]:
    """This process's environment, with the tested sources first on Python's path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])])}
