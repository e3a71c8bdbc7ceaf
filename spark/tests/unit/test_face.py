"""`from strandline_spark import …`: what notebooks get, whatever was imported before."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
{before}
import strandline_spark as pipeline
from strandline_spark import FACES
assert not any(name.startswith(("pyspark", "pyarrow", "numpy")) for name in sys.modules) or {before!r}
for name, module in FACES.items():
    scope = {{}}
    exec(f"from strandline_spark import {{name}}", scope)
    assert scope[name] is getattr(sys.modules[module], name), name
    assert getattr(pipeline, name) is scope[name], name
assert set(FACES) <= set(dir(pipeline))
"""


@pytest.mark.parametrize("before", ["", "import strandline_spark.spark\nimport strandline_spark.jobs.ingest.job"])
def test_names_mean_the_same_whatever_was_imported_before(before: str) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM.format(before=before)], check=True, timeout=60)


def test_other_names_are_refused_with_those_that_there_are() -> None:
    import strandline_spark as pipeline

    with pytest.raises(AttributeError, match=r"has no 'sesion': it has .*session"):
        pipeline.sesion  # noqa: B018


BARE = """
import sys
for name in ("deltalake", "matplotlib", "numba", "numpy", "pandas", "py4j", "pyarrow", "pyiceberg", "pyspark"):
    sys.modules[name] = None  # as if it were not installed
"""
NAMES = """
from strandline_spark import StrandlineError, session
try:
    session()
except StrandlineError as error:
    assert error.advice == "pip install 'strandline[spark]'", error
try:
    from strandline_spark import audit
except ImportError as error:
    assert str(error) == "audit needs pyspark: pip install 'strandline[spark]'", error
else:
    raise AssertionError("it works without PySpark")
"""
COMMANDS = """
from contextlib import redirect_stderr
from io import StringIO
from strandline.cli.app import app
for line in (
    "pipeline ingest --topic t --table /nowhere/t",
    "pipeline emit --topic t --table /nowhere/t --checkpoint /nowhere/c",
    "pipeline audit /nowhere",
    "pipeline lag --from /nowhere/lag.jsonl",
    "pipeline simulate --seeds 1..2",
    "pipeline histories /nowhere",
    "demo pipeline",
):
    printed = StringIO()
    with redirect_stderr(printed):
        try:
            app(line.split())
        except SystemExit as ended:
            status = ended.code
        else:
            status = None
    assert status == 1, (line, status)
    assert printed.getvalue().endswith("pip install 'strandline[spark]'\\n"), (line, printed.getvalue())
"""


@pytest.mark.parametrize("program", [NAMES, COMMANDS], ids=["names", "commands"])
def test_without_the_extra_everything_says_how_to_install_it(program: str) -> None:
    subprocess.run([sys.executable, "-c", BARE + program], check=True, timeout=60)
