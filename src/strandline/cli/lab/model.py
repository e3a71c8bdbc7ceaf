"""`strandline model`: explore every state that the controller's decisions about a partition can lead to."""

from typing import Annotated, Any

from cyclopts import App, Parameter
from msgspec.structs import replace

from strandline.cli.app import command
from strandline.cli.connect import Json, misuse
from strandline.cli.lab.exploring import explored
from strandline.sim.model import Exploration, Setup, explore, ladder
from strandline.sim.model.setup import ANY, NONE, usual

BROKERS_MAX = 6

Switch = Annotated[bool, Parameter(negative="")]

HELP = """Explore all states of a partition that the controller's own code can reach, breadth first.

Without sizes it runs brokers/min ISR 3/2, 4/2, 4/3 and 5/3, with symmetry reduction from four brokers on. If a law is
broken, it prints the shortest path there, and the exit status is 1.

`strandline model transactions` explores the transaction coordinator in the same way.
"""

app = App(name="model", help=HELP)
command(
    app,
    "transactions",
    "strandline.cli.lab.model_transactions:transactions",
    "Explore the transaction coordinator of one transactional id.",
)


@app.default
def model(
    *,
    brokers: int | None = None,
    min_isr: int | None = None,
    elr: bool = True,
    strategies: bool | None = None,
    managed: bool | None = None,
    by_hand: bool | None = None,
    directories: bool | None = None,
    torn: bool | None = None,
    shutdown: bool | None = None,
    unregister: bool | None = None,
    reassign: bool | None = None,
    several: bool | None = None,
    redirect: bool | None = None,
    symmetry: bool | None = None,
    last_standing: Switch = False,
    json_output: Json = False,
) -> None:
    """Explore the controller's decisions about a partition.

    Parameters
    ----------
    brokers
        number of brokers; at first each has a replica
    min_isr
        min.insync.replicas at first
    elr
        with Eligible Leader Replicas (KIP-966)
    strategies
        unclean.recovery.strategy changes; otherwise it is None
    managed
        unclean.recovery.manager.enabled: where no clean election is possible, a recovery elects any replica
    by_hand
        operators elect uncleanly: a replica that they name, or any
    directories
        brokers have two log directories, and may lose one
    torn
        brokers find that a replica lost records, when they start or while they run, and report it
    shutdown
        brokers shut down in a controlled way
    unregister
        brokers are unregistered
    reassign
        replicas are added, removed or swapped, and such moves are cancelled
    several
        a reassignment changes any number of replicas at once
    redirect
        a reassignment may replace another that is not finished
    symmetry
        states that differ only by brokers' ids count as one
    last_standing
        the only member of an ISR may lose its tail: without ELR that breaks a law, which is the reason for KIP-966
    """
    if brokers is None and min_isr is None:
        setups = ladder(elr)
    else:
        setups = (usual(3 if brokers is None else brokers, 2 if min_isr is None else min_isr, elr),)
    asked = {
        "strategies": None if strategies is None else (ANY if strategies else (NONE,)),
        "managed": managed,
        "by_hand": by_hand,
        "directories": directories,
        "torn": torn,
        "shutdown": shutdown,
        "unregister": unregister,
        "reassign": reassign,
        "several": several,
        "redirect": redirect,
        "symmetry": symmetry,
        "last_standing": last_standing or None,
    }
    chosen = {name: value for name, value in asked.items() if value is not None}
    setups = tuple(replace(setup, **chosen) for setup in setups)
    for setup in setups:
        if not 1 <= setup.min_isr <= setup.brokers <= BROKERS_MAX:
            misuse(
                f"--min-isr {setup.min_isr} and --brokers {setup.brokers} do not go together",
                f"--min-isr must be at least 1, and --brokers at least --min-isr and at most {BROKERS_MAX}",
            )
    explored(setups, explore, as_json, json_output=json_output)


def as_json(setup: Setup, result: Exploration) -> dict[str, Any]:
    return {
        "brokers": setup.brokers,
        "min_isr": setup.min_isr,
        "elr": setup.elr,
        "managed": setup.managed,
        "directories": setup.directories,
        "limits": setup.limits(),
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        "seconds": round(result.seconds, 3),
        "counterexample": result.counterexample,
    }
