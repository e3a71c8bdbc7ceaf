"""A mutant is applied in a copy of the source, and its tests are run with that copy. The work tree is never touched."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.mutant import ROOT, TESTS, Mutant, Stale, mutated
from tests.mutants.recording import OUTCOMES

from strandline.base.value import Value

LIMIT_S = 300.0  # for the tests of one mutant
PER_TEST_S = 5.0  # for all tests of all mutants, one after the other
KILLED, SURVIVED, WRONG = "killed", "survived", "wrong"


class Verdict(Value, frozen=True):
    name: str
    verdict: str
    why: str = ""  # which tests passed though they must fail, or what is wrong with the row

    @property
    def is_ok(self) -> bool:
        return self.verdict == KILLED


class Workshop:
    """A copy of the source, for one mutant after another."""

    def __init__(self, scratch: Path) -> None:
        self.source = scratch / "src"
        self.outcomes = scratch / "outcomes.json"
        shutil.copytree(ROOT / "src", self.source)

    @contextmanager
    def with_changes(self, mutant: Mutant) -> Iterator[None]:
        """Raises `Stale`. A second change may be in the same file as the first."""
        originals: dict[Path, bytes] = {}
        times: dict[Path, tuple[int, int]] = {}
        try:
            for file, old, new in mutant.changes:
                path = self.source / "strandline" / file
                stat = path.stat()
                content = path.read_bytes()
                changed = mutated(content.decode(), file, old, new)
                if path not in originals:
                    originals[path], times[path] = content, (stat.st_atime_ns, stat.st_mtime_ns)
                path.write_text(changed)
            yield
        finally:
            for path, content in originals.items():
                path.write_bytes(content)
                os.utime(path, ns=times[path])

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": f"{self.source}{os.pathsep}{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",  # what is compiled from a mutant must not outlive it
            "PYTHONHASHSEED": "1",
            OUTCOMES: str(self.outcomes),
        }

    def run_tests(self, tests: Sequence[str], limit_s: float = LIMIT_S) -> tuple[dict[str, str], str]:
        """What became of each test, by its name without its case: failed in one case is failed. Second: what is wrong
        beside that."""
        self.outcomes.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "tests.mutants.recording"]
        command += [f"{TESTS}/{test}" for test in tests]
        try:
            subprocess.run(command, cwd=ROOT, env=self.environment(), capture_output=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return {}, f"no end within {limit_s:.0f} s"
        if not self.outcomes.exists():
            return {}, "pytest did not come to an end"
        report = json.loads(self.outcomes.read_text())
        found: dict[str, str] = {}
        for node, outcome in report["tests"].items():
            name = node.removeprefix("tests/").partition("[")[0]
            if found.get(name) != "failed":
                found[name] = outcome
        return found, "\n".join(report["broken"])

    def judge(self, mutant: Mutant) -> Verdict:
        try:
            with self.with_changes(mutant):
                found, broken = self.run_tests(mutant.tests)
        except Stale as stale:
            return Verdict(mutant.name, WRONG, str(stale))
        return verdict_of(mutant, found, broken)


def verdict_of(mutant: Mutant, found: dict[str, str], broken: str) -> Verdict:
    if broken:
        return Verdict(mutant.name, WRONG, f"its tests could not be run: {broken.splitlines()[-1]}")
    missing = [test for test in mutant.tests if named(test) not in found]
    if missing:
        return Verdict(mutant.name, WRONG, f"no such test: {', '.join(missing)}")
    passed = [test for test in mutant.tests if found[named(test)] != "failed"]
    return (
        Verdict(mutant.name, SURVIVED, f"passed with it: {', '.join(passed)}")
        if passed
        else Verdict(mutant.name, KILLED)
    )


def named(test: str) -> str:
    return test.partition("[")[0]


@contextmanager
def workshop() -> Iterator[Workshop]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        yield Workshop(Path(scratch))


def why_unsound(mutants: Sequence[Mutant]) -> str:
    """Do all the tests pass without any mutant? Only then a failure says something."""
    tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    with workshop() as shop:
        found, broken = shop.run_tests(tests, LIMIT_S + PER_TEST_S * len(tests))
    failed = [test for test in tests if found.get(named(test)) == "failed"]
    return broken or (f"without any mutant these fail: {', '.join(failed)}" if failed else "")
