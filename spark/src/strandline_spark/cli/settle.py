"""`strandline pipeline settle`: ends transactions that exactly-once sinks have left open. It needs no Spark."""

import sys
import time
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from strandline.cli.connect import DEFAULT_BOOTSTRAP, Bootstrap, CommandConfig, Json, fail, misuse
from strandline.cli.show import Column, Fitted, show_rows
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline_spark.cli.options import Options, kafka_options
from strandline_spark.errors import StrandlineError
from strandline_spark.sink.exactly_once.leftovers import Found, Leftover, end_all, look

INCOMPLETE = 3
MINUTE_MS = 60_000
FATES = {
    "commit": ("committed: it was decided", "would be committed: it is decided"),
    "abort": ("aborted: it was not decided", "would be aborted: it is not decided"),
    "wait": ("left alone: it is not old enough",) * 2,
}


def settle(
    *,
    name: Annotated[Sequence[str], Parameter(negative="", show_default=False)] = (),
    older_than_minutes: float = 15,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    accept_losses: Annotated[bool, Parameter(negative="")] = False,
    option: Options = (),
    command_config: CommandConfig = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    json_output: Json = False,
) -> int:
    """End the transactions that queries with deliveryGuarantee=exactly-once have left open.

    What a driver had decided is committed, everything else is aborted. Use it for queries that will not be started
    again: a query that is started again does this itself. A batch of a running query is not damaged, but it fails if
    its transactions are aborted, so let --older-than-minutes be longer than a batch takes.

    Exit status: 0 if nothing is left; 1 on an error, also if decided rows were lost; 3 if a broker did not answer.

    Parameters
    ----------
    name
        only this query (its id) or write (its transactionName); repeatable
    older_than_minutes
        only transactions that were opened earlier than that
    dry_run
        show what would be done, and do nothing
    accept_losses
        go on if a decided transaction was aborted by its timeout, so that its rows are lost
    """
    if older_than_minutes < 0:
        misuse(f"--older-than-minutes must not be negative, and is {older_than_minutes:g}")
    now_ms = int(time.time() * 1000)
    try:
        with Cluster(ClientConfig.of(kafka_options(bootstrap, option, command_config))) as cluster:
            found = look(cluster, name, now_ms - int(older_than_minutes * MINUTE_MS))
            if not dry_run:
                end_all(cluster, found, accept_losses=accept_losses)
    except StrandlineError as error:
        fail(error.problem, error.advice)
    show(found, now_ms, dry_run, json_output)
    for text in found.silent:
        print(f"not known: {text}; it may coordinate more", file=sys.stderr)
    return INCOMPLETE if found.silent else 0


def show(found: Found, now_ms: int, dry_run: bool, json_output: bool) -> None:
    rows = [row_of(one, now_ms, dry_run) for one in found.leftovers]
    if not rows and not json_output:
        done = "would be recorded as committed" if dry_run else "recorded as committed"
        print(f"no open transactions{''.join(f'; {name}: {done}' for name in found.undone)}")
        return
    show_rows(rows, json_output, table_of, lambda row: f"{row['transactional_id']}: {row['result']}")


def row_of(one: Leftover, now_ms: int, dry_run: bool) -> dict[str, Any]:
    return {
        "name": one.name,
        "transactional_id": one.transactional_id,
        "opened_ms": one.opened_ms,
        "times_out_ms": one.times_out_ms,
        "age_min": (now_ms - one.opened_ms) // MINUTE_MS,
        "partitions": list(one.partitions),
        "fate": one.fate,
        "result": FATES[one.fate][dry_run],
    }


def table_of(rows: list[dict[str, Any]]) -> Fitted:
    table = Fitted(
        Column("TransactionalId"), Column("Open for (min)", "right", drops=1), Column("Result", is_text=True)
    )
    for row in rows:
        table.add_row(row["transactional_id"], str(row["age_min"]), row["result"])
    return table
