"""What a command imports before it does anything: its start is most of what a short command costs."""

import re
import subprocess
import sys

import pytest
from cyclopts import App

from strandline.cli.app import app
from strandline.cli.commands import COMMANDS, PIPELINE, help_text

pytestmark = pytest.mark.slow  # a process for each command

RUN = """
import sys
from strandline.cli.main import run
status = 0
try:
    run()
except SystemExit as ended:
    status = ended.code
heavy = [name for name in {heavy!r} if name in sys.modules]
print("status", status, "imported", *heavy, file=sys.stderr)
"""
ALWAYS_HEAVY = (
    "confluent_kafka",
    "rich.progress",
    "strandline.broker.node",
    "strandline.controller.controller",
    "strandline.server.pump",
    "strandline.sim",
    "strandline.testing",
    "strandline_spark.spark",
)
NEEDS = "error: this command needs {}\n  pip install 'strandline[{}]'\n"
NOBODY = ("--bootstrap-server", "127.0.0.1:1")


def imported(arguments: tuple[str, ...], *heavy: str) -> str:
    """The last line of what the command writes about itself."""
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(heavy=(*ALWAYS_HEAVY, *heavy)), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [("topics", "--help"), ("explain", "--help"), ("configs", "alter", "--help")],
    ids=" ".join,
)
def test_help_imports_nothing_that_only_running_needs(arguments: tuple[str, ...]) -> None:
    assert imported(arguments) == "status 0 imported"


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "list"),
        ("topics", "describe"),
        ("configs", "describe", "--entity-type", "topics"),
        ("features", "describe"),
        ("reassignments", "list"),
        ("log-dirs", "describe"),
        ("metrics",),
        ("losses",),
        ("explain", "t"),
    ],
    ids=" ".join,
)
def test_administration_needs_no_librdkafka_and_draws_no_table_before_there_are_rows(
    arguments: tuple[str, ...],
) -> None:
    assert imported((*arguments, *NOBODY), "rich.console", "rich.table") == "status 1 imported"


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("--version",)], ids=" ".join)
def test_the_list_of_commands_is_printed_without_the_library_for_commands(arguments: tuple[str, ...]) -> None:
    assert imported(arguments, "cyclopts", "rich", "msgspec") == "status 0 imported"


def test_a_node_starts_without_what_only_other_commands_need() -> None:
    command = [sys.executable, "-c", RUN.format(heavy=("cyclopts", "rich", "importlib.metadata", "argparse"))]
    done = subprocess.run([*command, "node", "--help"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "status 0 imported\n"
    assert done.stdout.startswith("usage: strandline node --config FILE\n")


def test_the_list_of_commands_has_each_command_with_its_sentence_and_fits_a_terminal() -> None:
    text = help_text()
    for name, (_, summary) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", text, re.MULTILINE), name
    assert re.search(rf"^  pipeline +{re.escape(PIPELINE)}$", text, re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 80


def ended(program: str, arguments: list[str]) -> str:
    """What it wrote about its failure."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    return done.stderr


def test_without_confluent_kafka_a_command_that_needs_it_says_how_to_install_it() -> None:
    program = "import sys; sys.modules['confluent_kafka'] = None; from strandline.cli.main import run; run()"
    for arguments in (["produce", "t"], ["consume", "t"], ["bench"], ["demo"], ["bench", "scale"]):
        assert ended(program, arguments) == NEEDS.format("confluent-kafka", "clients")


def test_without_strandline_spark_its_commands_say_how_to_install_it() -> None:
    program = (
        "import sys, importlib.metadata as m; m.entry_points = lambda **_: (); "
        "from strandline.cli.main import run; run()"
    )
    here = ["pipeline"], ["pipeline", "audit", "x", "--json"], ["demo", "pipeline"], ["schema", "pipeline", "audit"]
    for arguments in here:
        assert ended(program, arguments) == NEEDS.format("strandline-spark", "spark")


def test_every_command_can_be_imported_under_its_name() -> None:
    for name in COMMANDS:
        command = app[name]
        assert isinstance(command, App)
        assert command.name == (name,)
