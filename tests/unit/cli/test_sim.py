"""The simulator's face: what it says and with which status, for good runs, failing ones, and bad input."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.printed import hold

from strandline.cli.app import app
from strandline.cli.lab.sim import is_eligible
from strandline.history.judge import anomalies
from strandline.history.policy import why_tolerated
from strandline.history.recorded import Known, Recorded, read_line
from strandline.history.view import views
from strandline.sim.runs.plan import draw_plan, read_plan, write_plan

pytestmark = pytest.mark.slow  # processes that simulate

PLANTED = "joins-below-high-watermark"
SEED = 2  # finds it


def sim(*arguments: str) -> tuple[int, str, str]:
    status, out, err = run("strandline", "sim", *arguments)
    hold(["sim", *arguments], out)
    return status, out, err


def planted(*arguments: str) -> tuple[int, str, str]:
    return run("tests.planted", *arguments)


def run(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_bad_input_is_reported_and_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"seed": "seven"}')
    for arguments, says in (
        (("--seeds", "7..3"), "FIRST..LAST"),
        (("--seeds", "all"), "FIRST..LAST"),
        (("--seed", "1", "--seeds", "1..2"), "one of --seed, --seeds and --plan"),
        (("--seeds", "1..2", "--history", "h.jsonl"), "--history is for one run"),
        (("--seeds", "1..100", "--eligible", "gentle"), "none of the seeds 1..100 is gentle"),
        (("--plan", "/no/such/plan.json"), "/no/such/plan.json"),
        (("--plan", str(path)), "Expected `int`, got `str`"),
    ):
        with pytest.raises(SystemExit) as ended:
            app(["sim", *arguments])
        out, err = capsys.readouterr()
        assert (ended.value.code, out) == (2, ""), arguments
        assert says in err, arguments


def test_the_last_line_names_seed_verdict_and_digest_and_a_plan_runs_as_its_seed_does(tmp_path: Path) -> None:
    status, out, _ = sim("--seed", "40")
    assert status == 0
    [digest] = re.findall(r"^seed 40: ok, digest ([0-9a-f]{16})$", out.splitlines()[-1])
    path = tmp_path / "plan.json"
    path.write_bytes(write_plan(draw_plan(40)))
    status, out, _ = sim("--plan", str(path), "--json")
    assert status == 0
    assert json.loads(out)["digest"] == digest


def test_a_failing_seed_leaves_a_story_a_diagram_and_a_smaller_plan_that_fails_too(tmp_path: Path) -> None:
    where = ("--out", str(tmp_path))
    status, out, _ = planted(PLANTED, "--seed", str(SEED), "--shrink", "--shrink-runs", "6", *where)
    assert status == 1
    assert re.match(rf"seed {SEED}: VIOLATION: .*, digest [0-9a-f]{{16}}$", out.splitlines()[-1])
    assert "what failed" in out
    plan = tmp_path / f"sim-{SEED}.plan.json"
    assert f"replay: strandline sim --plan {plan}" in out
    assert len(read_plan(plan.read_bytes()).faults) < len(draw_plan(SEED).faults)
    assert "<svg" in (tmp_path / f"sim-{SEED}.html").read_text()
    assert (tmp_path / f"sim-{SEED}.txt").read_text().strip() in out


def test_a_campaign_lists_failures_with_the_command_that_replays_them_and_goes_on() -> None:
    status, out, _ = sim("--seeds", "40..41", "--jobs", "1")
    assert status == 0
    assert out.splitlines()[-1].startswith("seeds 40..41: 2 ok, 0 failed")
    status, out, _ = planted(PLANTED, "--seeds", f"{SEED}..{SEED + 1}", "--jobs", "1")
    assert status == 0  # found
    assert f"python -m tests.planted {PLANTED} --seed {SEED}" in out


def test_planted_bugs_are_listed() -> None:
    status, _, err = planted("no-such-bug")
    assert (status, "python -m tests.planted list" in err) == (2, True)
    status, out, _ = planted("list", "--json")
    assert status == 0
    assert PLANTED in {row["name"] for row in json.loads(out)}


def test_a_campaign_may_leave_out_seeds_by_what_their_faults_take() -> None:
    first = {how: next(seed for seed in range(101, 400) if is_eligible(seed, how)) for how in ("gentle", "ruthless")}
    for how, seed in first.items():
        options = draw_plan(seed).options
        assert (options.elr, options.is_ruthless) == (True, how == "ruthless")
    seed = first["gentle"]
    status, out, _ = sim("--seeds", f"101..{seed}", "--eligible", "gentle", "--jobs", "1")
    assert status == 0
    assert out.splitlines()[-1].startswith(f"seeds {seed}..{seed}: 1 ok, 0 failed")


def test_a_runs_history_is_written_with_what_is_known_of_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    status, _, err = sim("--seed", "18", "--history", str(path))
    assert (status, err) == (0, "")
    lines = [read_line(line) for line in path.read_bytes().splitlines()]
    operations = [line for line in lines if isinstance(line, Recorded)]
    keys = [line for line in lines if isinstance(line, Known)]
    assert [operation.index for operation in operations] == list(range(len(operations)))
    assert any(key.final for key in keys)
    facts = {key.key: key.facts for key in keys}
    assert all(why_tolerated(a, facts[v.key]) for v in views(operations) for a in anomalies(v))


def test_the_history_of_a_run_that_was_broken_off_says_so_once(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    arguments = (PLANTED, "--seed", str(SEED), "--history", str(path), "--out", str(tmp_path))
    status, _, err = planted(*arguments)
    assert status == 1
    assert err.count("records that were not read count as unseen") == 1
    assert path.stat().st_size > 1000


def test_a_history_that_cannot_be_written_is_reported() -> None:
    status, _, err = sim("--seed", "18", "--history", "/no/such/folder/h.jsonl")
    assert status == 1
    assert "/no/such/folder/h.jsonl cannot be written" in err


def test_a_workload_runs_alone() -> None:
    status, out, _ = sim("--seeds", "9..9", "--workload", "transactions", "--jobs", "1")
    assert status == 0
    assert "seeds 9..9: 1 ok" in out
    alone = sim("--seed", "9", "--workload", "transactions", "--json")[1]
    assert json.loads(alone)["digest"] != json.loads(sim("--seed", "9", "--json")[1])["digest"]
