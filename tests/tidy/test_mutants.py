"""The mutants, held against the source that they change and the page whose sentences they break. None is run here.

Whoever changes a line that a mutant changes writes its row in `tests/mutants/tables` anew, or takes the row out where
the line is gone; `python -m tests.mutants --only NAME` says whether its tests notice it still.
"""

import ast

import pytest
from tests.mutants.__main__ import by_page
from tests.mutants.mutant import ROOT, TESTS, Stale, mutated, read
from tests.mutants.page import sentences, unheld, why_not_held
from tests.mutants.rows import MUTANTS

CORE = ("wire", "log", "metadata", "quorum", "controller", "replica", "group", "broker")


def test_every_mutant_still_fits_the_source_and_is_python() -> None:
    wrong: list[str] = []
    for mutant in MUTANTS.values():
        sources: dict[str, str] = {}
        for file, old, new in mutant.changes:
            try:
                sources[file] = mutated(sources.get(file) or read(file), file, old, new)
            except Stale as stale:
                wrong.append(f"{mutant.name}: {stale}")
        for source in sources.values():
            ast.parse(source)
    assert wrong == [], "write these rows of tests/mutants/tables anew"


def test_every_test_that_a_mutant_names_exists() -> None:
    known: dict[str, str] = {}
    missing: list[str] = []
    for mutant in MUTANTS.values():
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("::")
            if file not in known:
                known[file] = (TESTS / file).read_text() if (TESTS / file).exists() else ""
            if f"def {name.partition('[')[0]}(" not in known[file]:
                missing.append(f"{mutant.name}: {test}")
    assert missing == []


def test_the_sentences_that_mutants_break_are_on_the_page_beside_their_tests() -> None:
    page = sentences()
    assert [why for mutant in MUTANTS.values() for why in why_not_held(mutant, page)] == []


def test_every_sentence_of_the_page_has_a_mutant() -> None:
    without = [sentence.title for sentence in unheld(list(MUTANTS.values()))]
    assert without == [], "which small wrong change breaks it, and which test beside it must fail then? Write its row"


def test_a_campaign_ends_where_a_sentence_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert "python -m tests.mutants --page\n" in (ROOT / "Makefile").read_text()
    assert by_page(list(MUTANTS.values())) == 0
    assert by_page([]) == 1
    assert f"{len(sentences())} of {len(sentences())} sentences without a mutant" in capsys.readouterr().out


def test_every_core_package_has_mutants() -> None:
    files = [file for mutant in MUTANTS.values() for file, _, _ in mutant.changes]
    assert [core for core in CORE if not any(file.startswith(f"{core}/") for file in files)] == []
    assert len(MUTANTS) >= 60
