"""The quorum's transcripts: one machine, what happens to it, and everything it does."""

from pathlib import Path

import pytest
from tests.datadriven import run
from tests.unit.quorum.play import Play

SCRIPTS = Path(__file__).parents[2] / "scripts" / "quorum"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path, rewrite: bool) -> None:
    run(path, Play().perform, rewrite)
