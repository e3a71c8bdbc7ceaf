"""The core runs with what it declares and nothing else: without Spark, Java, pyarrow, numba."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
EVERY_MODULE = """
import importlib, pkgutil, strandline
for found in pkgutil.walk_packages(strandline.__path__, "strandline."):
    if not found.name.endswith("__main__"):
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if error.name == "jwt":
                assert found.name.startswith(("strandline.server.oauth.", "strandline.security.sasl.jwt_tokens"))
                continue
            if error.name == "pytest":
                assert found.name == "strandline.testing.plugin"
                continue
            if error.name in ("starlette", "uvicorn", "anyio"):
                assert found.name.startswith("strandline.console."), found.name
                continue
            shows_clients = found.name.startswith(("strandline.bench.", "strandline.demo.", "strandline.cli."))
            assert error.name == "confluent_kafka" and (shows_clients or found.name.endswith(".librdkafka")), found.name
"""


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(text) for text in project["dependencies"]]


def needed(requirements: list[Requirement]) -> set[str]:
    """The distributions of these requirements, and of theirs."""
    names, left = set[str](), list(requirements)
    while left:
        found = left.pop()
        if found.name not in names and (found.marker is None or found.marker.evaluate({"extra": ""})):
            names.add(found.name)
            left += [Requirement(text) for text in distribution(found.name).requires or ()]
    return names


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which Python finds the core and what it needs, as links to what is installed here."""
    folder = tmp_path_factory.mktemp("site")
    for name in needed(declared()):
        installed = distribution(name)
        for top in {path.parts[0] for path in installed.files or () if path.parts[0] not in ("..", "__pycache__")}:
            (folder / top).symlink_to(str(installed.locate_file(top)))
    kept = {key: text for key, text in os.environ.items() if key not in ("PYTHONPATH", "JAVA_HOME")}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(folder)])}


def run(environment: dict[str, str], *arguments: str, status: int = 0) -> str:
    """What it prints; on stderr if it fails."""
    command = [sys.executable, "-S", *arguments]  # -S: without what is installed besides
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


def test_nothing_of_spark_is_found_there(alone: dict[str, str]) -> None:
    """Else the tests below show nothing."""
    absent = ("pyspark", "pyarrow", "numba", "numpy", "pandas", "matplotlib", "strandline_spark")
    run(alone, "-c", f"from importlib.util import find_spec; assert not any(map(find_spec, {absent!r}))")


def test_every_module_of_the_core_is_imported(alone: dict[str, str]) -> None:
    run(alone, "-c", EVERY_MODULE)


def test_commands_run_and_those_of_spark_are_not_there(alone: dict[str, str]) -> None:
    commands = re.findall(r"[a-z-]+", run(alone, "-m", "strandline", "--help"))
    assert "topics" in commands
    assert "strandline[spark]" in run(alone, "-m", "strandline", "pipeline", "lag", status=1)
    assert '"seed":51' in run(alone, "-m", "strandline", "sim", "--seeds", "51..51", "--json")
