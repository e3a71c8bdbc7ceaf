import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tests.planted
from tests.planted import PLANTED, NotPlanted, Planted, install
from tests.planted.changes import Gives, Instead, Swap
from tests.planted.guards import ROOT, module_of, source_of
from tests.planted.hook import changes_by_module, mutated
from tests.rows import each

BY_NAME = each("planted", PLANTED.values(), ids=PLANTED.keys())
# What must be among them: the guards that the formal model of KIP-966 marks, and bugs that Kafka once had.
CHECKS = range(1, 11)
TRAPS = (1, 5, 8, 14, 15, 17, 18, 19, 20, 21, 22, 23, 27, 31, 32, 33, 36, 37)
LINES_MAX = 3


@BY_NAME
def test_a_planted_bug_changes_the_code_of_its_module_and_it_still_compiles(planted: Planted) -> None:
    for module, changes in changes_by_module(planted).items():
        source = source_of(module)
        for change in changes:
            with_bug = mutated([change], source)
            assert ast.dump(ast.parse(with_bug)) != ast.dump(ast.parse(source))
            compile(with_bug, module, "exec")


@BY_NAME
def test_a_planted_bug_is_small_and_says_what_it_costs(planted: Planted) -> None:
    for change in planted.changes:
        match change.how:
            case Swap(old=text) | Gives(value=text):
                assert "\n" not in text
            case Instead(text=text):
                assert text.count("\n") < LINES_MAX
    assert planted.harm
    assert planted.trap
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", planted.name)


@BY_NAME
def test_no_bug_is_planted_where_the_hook_itself_has_been(planted: Planted) -> None:
    """What the hook imports is imported before a bug can be planted in it."""
    assert not any(module.startswith(("strandline.sim", "strandline.base")) for module in changes_by_module(planted))


def test_names_are_those_of_the_table_and_no_two_bugs_are_the_same() -> None:
    assert all(planted.name == name for name, planted in PLANTED.items())
    bugs = [(planted.changes, planted.found_by) for planted in PLANTED.values()]  # some are found in both ways
    assert len(set(bugs)) == len(bugs) >= 30


def test_every_guard_that_the_formal_model_marks_is_taken_away_once() -> None:
    found = {int(n) for planted in PLANTED.values() for n in re.findall(r"KIP-966 check (\d+)", planted.trap)}
    assert found == set(CHECKS)


def test_every_known_trap_is_among_them() -> None:
    found = {int(n) for planted in PLANTED.values() for n in re.findall(r"\bT(\d+)\b", planted.trap)}
    assert set(TRAPS) <= found
    assert any("KAFKA-19522" in planted.trap for planted in PLANTED.values())


def test_every_written_plan_is_of_a_bug() -> None:
    named = {planted.path for planted in PLANTED.values() if planted.path is not None}
    assert sorted(named) == sorted((Path(tests.planted.__file__).parent / "plans").iterdir())


# --- the hook


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)


TALK = """
from strandline.log.producers.producers import BATCHES_MAX
print(BATCHES_MAX)
"""
PLANT = """
from tests.planted import install
install("one-batch-remembered")
"""


def test_a_planted_module_behaves_as_changed_and_a_process_without_it_does_not() -> None:
    assert run(TALK).stdout == "5\n"
    assert run(PLANT + TALK).stdout == "1\n"
    assert run(TALK).stdout == "5\n", "the changed code came out of the cache of compiled files"


def test_compiled_files_are_neither_read_nor_written_for_a_planted_module() -> None:
    cache = ROOT / "strandline" / "log" / "__pycache__"
    run(TALK)
    before = {path.name: path.stat().st_mtime_ns for path in cache.glob("producers.*.pyc")}
    run(PLANT + TALK)
    assert {path.name: path.stat().st_mtime_ns for path in cache.glob("producers.*.pyc")} == before


def test_other_modules_see_the_changed_one_however_they_import_it() -> None:
    asks = """
import sys
from strandline.log.producers import producer_state, producers
there = sys.modules["strandline.log.producers.producers"]
print(producer_state.Producers is producers.Producers is there.Producers, producers.BATCHES_MAX)
"""
    seen = run(PLANT + asks)
    assert seen.stdout == "True 1\n", seen.stderr


def test_planting_imports_nothing_that_a_bug_may_be_planted_in() -> None:
    program = "import sys, tests.planted\nprint(*sorted(m for m in sys.modules if m.startswith('strandline')))"
    imported = set(run(program).stdout.split())
    assert "strandline.base.value" in imported
    assert not imported & {module_of(change.guard) for planted in PLANTED.values() for change in planted.changes}


def test_a_bug_in_a_module_that_is_imported_already_is_refused() -> None:
    importlib.import_module("strandline.log.producers.producers")
    with pytest.raises(NotPlanted, match="imported already"):
        install("one-batch-remembered")


def test_an_unknown_bug_is_refused() -> None:
    with pytest.raises(NotPlanted, match="no planted bug named 'nothing'"):
        install("nothing")


def test_a_second_bug_in_one_process_is_refused() -> None:
    assert "one-batch-remembered is planted already" in run(PLANT + "install('votes-twice')").stderr


def test_a_bug_of_two_guards_is_planted_in_both() -> None:
    name = next(planted.name for planted in PLANTED.values() if planted.also is not None)
    asks = f"""
from tests.planted import PLANTED, install
from tests.planted.guards import module_of, source_of
install({name!r})
import importlib
for change in PLANTED[{name!r}].changes:
    module = module_of(change.guard)
    print(importlib.import_module(module).__loader__.get_source(module) == source_of(module), end=" ")
"""
    seen = run(asks)
    assert seen.stdout == "False False ", seen.stderr


def test_two_guards_of_one_file_go_together() -> None:
    both = next(planted for planted in PLANTED.values() if len(planted.changes) > len(changes_by_module(planted)))
    [(module, changes)] = changes_by_module(both).items()
    source = source_of(module)
    first, second = (mutated([change], source) for change in changes)
    assert len({source, first, second, mutated(changes, source)}) == 4
