"""The examples in examples/deploy: the files parse, and what they run exists."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from tests.tidy.test_documented_commands import why_not

from strandline.broker.config import NodeConfig, parse_properties

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "deploy"
PROGRAM = "/opt/strandline/bin/strandline"
SETTINGS = "/etc/strandline/server.properties"


def unit() -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read(EXAMPLES / "strandline.service")
    return parser


def instructions() -> list[tuple[str, str]]:
    """Of the Containerfile: each with its arguments."""
    text = (EXAMPLES / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_unit_runs_a_command_that_exists() -> None:
    program, *arguments = shlex.split(unit()["Service"]["ExecStart"])
    assert program == PROGRAM
    assert arguments == ["node", "--config", SETTINGS]
    assert why_not(shlex.join(arguments)) is None


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """With a program and a user that this machine has: it looks for both."""
    text = (EXAMPLES / "strandline.service").read_text().replace(PROGRAM, sys.executable)
    path = tmp_path / "strandline.service"
    path.write_text(re.sub(r"^(User|Group)=strandline$", r"\1=root", text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert [line for line in done.stderr.splitlines() if "strandline.service" in line] == []
    assert done.returncode == 0, done.stderr


def test_the_configuration_is_valid_and_the_page_shows_it() -> None:
    text = (EXAMPLES / "server.properties").read_text()
    config = NodeConfig.from_properties(parse_properties(text))
    assert (config.node_id, config.log_dirs, sorted(config.unknown)) == (1, ("/var/lib/strandline",), [])
    assert text.split("\n", 1)[1] in (ROOT / "docs" / "deploy.md").read_text()


def test_the_container_runs_a_command_that_exists_on_files_that_exist() -> None:
    found = instructions()
    known = ("FROM", "COPY", "RUN", "USER", "VOLUME", "STOPSIGNAL", "ENTRYPOINT", "CMD")
    assert {word for word, _ in found} <= {*known}
    last = dict(found)
    assert json.loads(last["ENTRYPOINT"]) == [PROGRAM]
    assert why_not(shlex.join(json.loads(last["CMD"]))) is None
    copied = [rest.split()[:-1] for word, rest in found if word == "COPY" and not rest.startswith("--from")]
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []
    targets = [rest.split()[-1] for word, rest in found if word == "COPY"]
    assert SETTINGS in targets
    config = NodeConfig.from_properties(parse_properties((EXAMPLES / "server.properties").read_text()))
    assert last["VOLUME"] == config.log_dirs[0]
    (extra,) = re.findall(r"'/source\[(\w+)\]'", " ".join(rest for word, rest in found if word == "RUN"))
    assert f"{extra} = [" in (ROOT / "pyproject.toml").read_text()
