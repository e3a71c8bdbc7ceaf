"""`strandline model transactions`: explore every state that the transaction coordinator of one id can come to."""

from typing import Any

from msgspec.structs import asdict, replace

from strandline.cli.connect import Json, misuse
from strandline.cli.lab.exploring import explored
from strandline.sim.model.search import Exploration
from strandline.sim.model.transactions import Setup, explore, ladder
from strandline.txn.transaction import EPOCH_LAST

VERSIONS = (1, 2)
LIMITS_MAX = 6


def transactions(
    *,
    version: int | None = None,
    two_phase: bool | None = None,
    starts: int | None = None,
    bumps: int | None = None,
    transactions: int | None = None,
    failovers: int | None = None,
    timeouts: int | None = None,
    late: int | None = None,
    losses: int | None = None,
    refusals: int | None = None,
    epoch: int | None = None,
    json_output: Json = False,
) -> None:
    """Explore all that two clients of one transactional id, faults and time can lead to, breadth first.

    The coordinator is the broker's own code. Two partitions follow the log's own rules for producers and markers. If a
    law is broken, it prints the shortest path there, and the exit status is 1.

    Without options it explores several setups, each with other kinds of faults. --version and --two-phase choose among
    them. Any other option explores one setup, with the defaults below for what is not given.

    Parameters
    ----------
    version
        transaction.version of the cluster and of the clients: 1 or 2
    two_phase
        transactions are prepared, and another client takes them over and decides them (KIP-939)
    starts
        how often a client sends InitProducerId [2]
    bumps
        how often a client that runs sends InitProducerId with its epoch (KIP-360) [0]
    transactions
        how many transactions clients begin [2]
    failovers
        how often another broker becomes the coordinator; the one before goes on until it learns that [1]
    timeouts
        how many transactions time out [1]
    late
        how many requests of clients are sent twice, given up, or not answered; the first copy may still arrive [0]
    losses
        how many WriteTxnMarkers are refused, not answered, or arrive twice [0]
    refusals
        how many records of the coordinator are not written, since too few replicas are in sync [0]
    epoch
        producer epoch at first: 32765 is the last but one [-1: nobody has used the id]
    """
    numbers = {
        "starts": starts,
        "bumps": bumps,
        "transactions": transactions,
        "failovers": failovers,
        "timeouts": timeouts,
        "late": late,
        "losses": losses,
        "refusals": refusals,
        "epoch": epoch,
    }
    chosen = {name: value for name, value in numbers.items() if value is not None}
    if version not in (None, *VERSIONS):
        misuse(f"--version must be 1 or 2, and is {version}", "2 is what brokers and clients use today")
    if two_phase and version == 1:
        misuse("--two-phase needs --version 2", "leave --version out, or name 2")
    setups: tuple[Setup, ...]
    if chosen:
        setups = (replace(Setup(version=2 if version is None else version, two_phase=bool(two_phase)), **chosen),)
    else:
        setups = ladder(version, two_phase=two_phase)
    for setup in setups:
        if setup.epoch < -1 or setup.epoch > EPOCH_LAST:
            misuse(f"--epoch must be between -1 and {EPOCH_LAST}, and is {setup.epoch}")
        counts = {name: getattr(setup, name) for name in numbers if name != "epoch"}
        for name, count in counts.items():
            if not 0 <= count <= LIMITS_MAX:
                misuse(f"--{name} must be between 0 and {LIMITS_MAX}, and is {count}")
    explored(setups, explore, as_json, json_output=json_output)


def as_json(setup: Setup, result: Exploration) -> dict[str, Any]:
    return {
        **asdict(setup),
        "limits": setup.limits(),
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        "seconds": round(result.seconds, 3),
        "counterexample": result.counterexample,
    }
