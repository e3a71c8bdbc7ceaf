"""What `from strandline.pipeline import …` gives, in a process of its own: what was imported before must not count."""

import subprocess
import sys

import pytest

from strandline.pipeline import FACES


def told(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("first", ["", "import strandline.pipeline.emit.plan, strandline.pipeline.session"])
def test_every_name_is_what_its_module_calls_so(first: str) -> None:
    names = ", ".join(sorted(FACES))
    found = told(
        f"{first}\nfrom strandline.pipeline import {names}\nfor it in ({names}): print(it.__name__, callable(it))"
    )
    assert found.splitlines() == [f"{name} True" for name in sorted(FACES)]


def test_parts_of_a_job_are_still_modules() -> None:
    assert (
        told("from strandline.pipeline import emit\nfrom strandline.pipeline.emit import plan\nprint(plan.VERSION)")
        == "1"
    )


def test_a_name_that_is_not_there_is_told_with_those_that_are() -> None:
    code = "import strandline.pipeline as p\ntry: p.nothing\nexcept AttributeError as error: print(error)"
    assert told(code).startswith("strandline.pipeline has no 'nothing': it has Campaign, ")


def test_the_package_alone_imports_nothing_large() -> None:
    assert (
        told("import sys, strandline.pipeline\nprint('pyspark' in sys.modules, 'pyarrow' in sys.modules)")
        == "False False"
    )
