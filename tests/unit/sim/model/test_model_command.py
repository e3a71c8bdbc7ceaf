"""`strandline model`: what it prints, and its exit status."""

import json
import subprocess
import sys

import pytest
from tests.printed import hold

pytestmark = pytest.mark.slow  # processes that explore


def model(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "strandline", "model", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    hold(["model", *arguments], done.stdout)
    return done.returncode, done.stdout, done.stderr


def test_a_size_without_a_violation() -> None:
    status, shown, _ = model("--brokers", "2", "--min-isr", "2", "--no-reassign")
    assert status == 0
    header, result = shown.splitlines()
    assert header.startswith("2/2: 2 brokers, 2 replicas at first, min ISR 2; ELR on;")
    assert "states" in result
    assert result.endswith("s: no violation")


def test_a_counterexample_is_reported_and_fails_the_command() -> None:
    status, shown, errors = model("--no-elr", "--brokers", "3", "--no-reassign", "--last-standing")
    assert status == 1
    assert "1. leader 1 proposes the ISR [1]" in shown
    assert "wrong: broker 1 may lack committed records" in shown
    assert errors == "error: there is a counterexample for 3/2\n  a law is broken: its steps are above\n"


def test_scripts_get_json() -> None:
    status, shown, _ = model("--brokers", "2", "--min-isr", "1", "--no-reassign", "--no-elr", "--json")
    assert status == 0
    (result,) = json.loads(shown)
    assert (result["brokers"], result["min_isr"], result["elr"]) == (2, 1, False)
    assert result["counterexample"] is None
    assert result["states"] > 50


def test_more_min_isr_than_brokers_is_refused() -> None:
    status, shown, errors = model("--brokers", "2", "--min-isr", "3")
    assert (status, shown) == (2, "")
    assert errors.startswith("error: --min-isr 3 and --brokers 2 do not go together\n  --min-isr must be")


# --- strandline model transactions


def test_transactions_without_a_violation() -> None:
    status, shown, _ = model("transactions", "--starts", "1", "--transactions", "1", "--failovers", "0")
    assert status == 0
    header, result = shown.splitlines()
    assert header == (
        "transaction.version 2: 2 clients of one id, 1 start, 1 transaction in 2 partitions; no failover of the "
        "coordinator; 1 timeout; no late request; no lost or repeated WriteTxnMarkers; no refused record"
    )
    assert "states" in result
    assert result.endswith("s: no violation")


def test_a_counterexample_of_transactions_fails_the_command() -> None:
    status, shown, errors = model("transactions", "--version", "1", "--starts", "1", "--failovers", "0", "--late", "1")
    assert status == 1
    assert "8. client 1 gives its batch up" in shown
    assert "wrong: partition 0 has a record of transaction 1 of client 1, which is over" in shown
    assert (
        errors == "error: there is a counterexample for transaction.version 1\n  a law is broken: its steps are above\n"
    )


def test_scripts_get_json_of_transactions() -> None:
    status, shown, _ = model(
        "transactions", "--two-phase", "--starts", "1", "--failovers", "0", "--timeouts", "0", "--json"
    )
    assert status == 0
    (result,) = json.loads(shown)
    assert (result["version"], result["two_phase"], result["starts"], result["failovers"]) == (2, True, 1, 0)
    assert result["counterexample"] is None
    assert result["states"] > 50


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--version", "3"), "--version must be 1 or 2, and is 3"),
        (("--version", "1", "--two-phase"), "--two-phase needs --version 2"),
        (("--late", "-1"), "--late must be between 0 and 6, and is -1"),
        (("--epoch", "32767"), "--epoch must be between -1 and 32766, and is 32767"),
    ],
)
def test_transactions_that_make_no_sense_are_refused(arguments: tuple[str, ...], why: str) -> None:
    status, shown, errors = model("transactions", *arguments)
    assert (status, shown, errors.partition("\n")[0]) == (2, "", f"error: {why}")
