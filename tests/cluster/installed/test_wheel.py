"""The wheel in an empty environment: nothing of this checkout, and no package that it does not require itself.

All tests here share one environment. Its packages come from the package index, or from pip's cache.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from strandline.base import VERSION
from strandline.testing.local_cluster import free_ports, is_port_free

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("wheel"), pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[3]
OURS = ("PYTHON", "VIRTUAL_ENV", "STRANDLINE_")  # what variables of this environment begin with
TYPED = """
from strandline import __version__
from strandline.base.time import Instant
from strandline.client.config import ClientConfig

def configured(config: ClientConfig) -> int:
    return __version__  # error: it is a string

reveal_type(Instant)
"""


class Installed:
    """An environment with the wheel, and the folder in which commands run."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.bin = folder / "venv" / "bin"
        self.folder = folder
        self.environment = environment

    def pip(self, *arguments: str) -> None:
        """Add packages, with the pip of the tests' own environment."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python")]
        done = subprocess.run(
            [*pip, "install", "--quiet", "--only-binary=:all:", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"the package index is needed, or pip's cache of it\n{done.stderr}"

    def strandline(self, *arguments: str, status: int = 0, stdin: str = "") -> str:
        """What the command prints; on stderr if it is to fail."""
        done = subprocess.run(
            [self.bin / "strandline", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=100,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stderr if status else done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, without extras."""
    folder = tmp_path_factory.mktemp("alone")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
    installed = Installed(folder, kept)
    installed.pip(str(wheel))
    return installed


@pytest.fixture(scope="module")
def address(alone: Installed) -> Iterator[str]:
    """Of a cluster that the installed `up` runs, and then stops."""
    (port,) = free_ports(1)
    while not all(is_port_free(port + i) for i in range(9)):
        (port,) = free_ports(1)
    command = [alone.bin / "strandline", "up", "--dir", "cluster", "--port", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=alone.folder, env=alone.environment, start_new_session=True
    ) as up:
        assert up.stdout is not None
        try:
            assert any("ready after" in line for line in up.stdout), "it ended before it was ready"
            yield f"127.0.0.1:{port}"
            up.send_signal(signal.SIGINT)
            assert up.wait(100) == 0
        finally:
            up.kill()


def test_the_installed_commands_work_one_after_the_other(alone: Installed, wheel: Path, address: str) -> None:
    assert alone.strandline("--version").strip() == VERSION
    assert '"seed":51,' in alone.strandline("sim", "--seeds", "51..51", "--json")
    server = ["--bootstrap-server", address]
    alone.strandline("topics", "create", "greetings", "--partitions", "3", *server)
    for command in (["produce", "greetings", *server], ["demo"]):
        refused = alone.strandline(*command, status=1)
        assert refused == "error: this command needs confluent-kafka\n  pip install 'strandline[clients]'\n"
    refused = alone.strandline("pipeline", "lag", status=1)
    assert refused == "error: this command needs strandline-spark\n  pip install 'strandline[spark]'\n"

    alone.pip(f"{wheel}[clients]")
    alone.strandline("produce", "greetings", *server, stdin="hello\n")
    read = ["consume", "greetings", "--from-beginning", "--max-messages", "1", *server]
    assert alone.strandline(*read) == "hello\n"
    shown = alone.strandline("demo", "--seconds", "8", "--rate", "100", "--partitions", "1")
    assert "Everything that was acknowledged is there." in shown


def test_a_type_checker_reads_the_types_of_the_installed_package(alone: Installed) -> None:
    (alone.folder / "typed.py").write_text(TYPED)
    mypy = [sys.executable, "-m", "mypy", "--python-executable", str(alone.bin / "python"), "--strict", "typed.py"]
    done = subprocess.run(
        mypy, cwd=alone.folder, env=alone.environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert 'note: Revealed type is "def (item: int) -> strandline.base.time.Instant"' in done.stdout
    assert 'error: Incompatible return value type (got "str", expected "int")' in done.stdout
    assert "Found 1 error" in done.stdout
