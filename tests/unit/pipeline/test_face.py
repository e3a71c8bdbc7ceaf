"""`from strandline.pipeline import …`: what notebooks get, whatever was imported before."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
{before}
from strandline import pipeline
from strandline.pipeline import FACES
assert not any(name.startswith(("pyspark", "pyarrow", "numpy")) for name in sys.modules) or {before!r}
for name, module in FACES.items():
    scope = {{}}
    exec(f"from strandline.pipeline import {{name}}", scope)
    assert scope[name] is getattr(sys.modules[module], name), name
    assert getattr(pipeline, name) is scope[name], name
assert set(FACES) <= set(dir(pipeline))
"""


@pytest.mark.parametrize("before", ["", "import strandline.pipeline.spark\nimport strandline.pipeline.jobs.ingest.job"])
def test_names_mean_the_same_whatever_was_imported_before(before: str) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM.format(before=before)], check=True, timeout=60)


def test_other_names_are_refused_with_those_that_there_are() -> None:
    from strandline import pipeline

    with pytest.raises(AttributeError, match=r"has no 'sesion': it has .*session"):
        pipeline.sesion  # noqa: B018
