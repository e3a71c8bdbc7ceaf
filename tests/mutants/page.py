"""Which sentences of the protocol pages are held by a test that a mutant of the sentence is known to kill?"""

import re
from pathlib import Path

from tests.mutants.mutant import ROOT, Mutant

from strandline.base.value import Value

PAGES = tuple(ROOT / "docs" / name for name in ("protocol.md", "transaction-protocol.md"))
ROW = re.compile(r"^\| (?P<where>[^|]*) \| (?P<what>[^|]*) \| (?P<held>[^|]*) \|$")
TEST = re.compile(r"`(?P<test>[\w/]+\.py::test_\w+)`")
SCRIPT = re.compile(r"`scripts/(?P<part>\w+)/\w+\.txt`")
NOT_YET = "not yet"  # so the page says that a sentence has no test
SCRIPTS = {  # who runs the transcripts of a part
    "controller": "unit/controller/test_scripts.py::test_transcript",
    "group": "unit/group/test_scripts.py::test_transcript",
    "quorum": "unit/quorum/test_scripts.py::test_transcript",
    "replica": "unit/replica/test_scripts.py::test_script",
}


class Sentence(Value, frozen=True):
    section: str
    where: str
    what: str
    tests: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.section}, {self.where}: {self.what}"


def sentences() -> list[Sentence]:
    return [sentence for page in PAGES for sentence in sentences_of(page)]


def sentences_of(page: Path) -> list[Sentence]:
    found: list[Sentence] = []
    section = ""
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:].partition(":")[0]
        row = ROW.match(line)
        if row is None or row["what"] == "what must hold":
            continue
        tests = (*TEST.findall(row["held"]), *(SCRIPTS[part] for part in SCRIPT.findall(row["held"])))
        if row["held"] != NOT_YET:
            found.append(Sentence(section, row["where"], row["what"], tests))
    return found


def matching(part: str, page: list[Sentence]) -> list[Sentence]:
    """A part of a sentence, or its mark: of a trap (`T34`), or of a sentence about transactions (`98.3`)."""
    marked = [sentence for sentence in page if part == sentence.where]
    return marked or [sentence for sentence in page if len(part) > 4 and part in sentence.title]


def why_not_held(mutant: Mutant, page: list[Sentence]) -> list[str]:
    """What is wrong with the sentences that a mutant says it breaks."""
    wrong: list[str] = []
    names = {test.partition("[")[0] for test in mutant.tests}
    for part in mutant.holds:
        found = matching(part, page)
        if len(found) != 1:
            wrong.append(f"{mutant.name}: {part!r} is in {len(found)} sentences, not in one")
        elif not names & set(found[0].tests):
            wrong.append(f"{mutant.name}: none of its tests is named beside {part!r}")
    return wrong


def unheld(mutants: list[Mutant]) -> list[Sentence]:
    """Sentences without a mutant."""
    page = sentences()
    held = {found.title for mutant in mutants for part in mutant.holds for found in matching(part, page)}
    return [sentence for sentence in page if sentence.title not in held]
