"""Every example of docs/testing.md runs: tests in one session of pytest, and scripts as scripts."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
EXAMPLE = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLUGIN = ("-p", "no:strandline", "-p", "strandline.testing.plugin", "-p", "no:cacheprovider")

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def examples() -> dict[str, str]:
    return dict(EXAMPLE.findall(PAGE.read_text()))


def test_every_block_of_python_is_an_example_with_a_name() -> None:
    assert PAGE.read_text().count("```python\n") == len(examples()) == 11


def test_the_tests_of_the_page_pass(pytester: pytest.Pytester) -> None:
    found = {name: code for name, code in examples().items() if name.startswith("test_")}
    if find_spec("faststream") is None:  # an extra of its own, which is not installed everywhere
        del found["test_faststream.py"]
    for name, code in found.items():
        (pytester.path / name).write_text(code)
    result = pytester.runpytest_subprocess(*PLUGIN, "--strict-markers", "-W", "ignore", "--durations=5", timeout=250)
    result.assert_outcomes(passed=sum(code.count("\ndef test_") for code in found.values()))


@pytest.mark.parametrize("name", [name for name in examples() if not name.startswith("test_")])
def test_a_script_of_the_page_runs(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(examples()[name])
    done = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
