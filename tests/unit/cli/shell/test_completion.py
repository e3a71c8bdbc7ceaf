"""Completion scripts, in the shells themselves."""

import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cluster.commanding import strandline

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("completion")]
PATIENCE_S = 60


def script(shell: str) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = strandline("completion", shell)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout


def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    path = tmp_path / "strandline"
    path.write_text(script("bash"))

    def completed(*words: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in words)
        setting = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}"
        return said("bash", "-c", f'source {path}; {setting}; _strandline; printf "%s\\n" "${{COMPREPLY[@]}}"').split()

    assert completed("strandline", "to") == ["topics"]
    assert completed("strandline", "topics", "cre") == ["create"]
    assert completed("strandline", "topics", "create", "--rep") == ["--replication-factor"]
    assert completed("strandline", "users", "add", "--mechanism", "SCRAM-SHA-2") == ["SCRAM-SHA-256"]
    assert completed("strandline", "completion", "z") == ["zsh"]
    assert completed("strandline", "produce", "t", "--ac") == ["--acks", "--acknowledged"]


def test_fish_completes_commands_and_options_with_what_they_mean(tmp_path: Path) -> None:
    path = tmp_path / "strandline.fish"
    path.write_text(script("fish"))

    def completed(line: str) -> list[str]:
        return said("fish", "--no-config", "-c", f'source {path}; complete -C "{line}"').splitlines()

    assert completed("strandline to") == ["topics\tCreate, list, describe and delete topics."]
    (found,) = completed("strandline topics create --rep")
    assert found.startswith("--replication-factor\tnumber of replicas of each partition")


def test_zsh_completes_on_tab(tmp_path: Path) -> None:
    (tmp_path / "_cyclopts_strandline").write_text(script("zsh"))
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "dumb", "HOME": str(tmp_path)}
    with subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=environment
    ) as zsh:
        try:
            os.write(ours, f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -u -D; echo do''ne\n".encode())
            read_until(ours, b"done\r\n")
            os.write(ours, b"strandline topics cre\t--repl\t")
            assert b"create" in read_until(ours, b"--replication-factor")
        finally:
            zsh.kill()
            os.close(ours)
            os.close(theirs)


def read_until(terminal: int, wanted: bytes) -> bytes:
    """What the terminal shows until then."""
    shown, deadline = b"", time.monotonic() + PATIENCE_S
    while wanted not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4096)
    return shown


def test_a_command_whose_extra_is_missing_is_completed_by_its_name() -> None:
    program = (
        "import sys; sys.modules['confluent_kafka'] = None; sys.argv = ['strandline', 'completion', 'fish'];"
        "from strandline.cli.main import run; run()"
    )
    lines = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout.splitlines()
    assert [line for line in lines if "-a 'produce'" in line]
    assert not [line for line in lines if "-l key-separator" in line]
    assert [line for line in lines if "-l replication-factor" in line], "of topics create"
