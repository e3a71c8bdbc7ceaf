"""`strandline users`: who can log in with SCRAM. `strandline configs --entity-type users` does it in Kafka's way."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from strandline.cli.connect import HERE, Json, OfCluster, fail
from strandline.cli.security.passwords import password_for
from strandline.cli.show import Column, Fitted, Row, show_rows
from strandline.client.admin.users import (
    ITERATIONS,
    UserCredential,
    alter_credentials,
    credentials_of,
    deletion,
    upsertion,
)

app = App(name="users", help="List, add and remove users that log in with SCRAM.")

SCRAM_256: Literal["SCRAM-SHA-256"] = "SCRAM-SHA-256"
Mechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]
Name = Annotated[str, Parameter(help="the user's name, without User:")]


@app.command(name="list")
def list_users(*, cluster: OfCluster = HERE, json_output: Json = False) -> None:
    """List users and the mechanisms with which they can log in. Passwords and keys are not shown."""
    show_rows([row_of(one) for one in credentials_of(cluster.config)], json_output, table_of, line_of)


@app.command
def add(
    name: Name,
    *,
    mechanism: Annotated[Mechanism, Parameter(help="with which the user logs in")] = SCRAM_256,
    iterations: Annotated[int, Parameter(help="how often the password is hashed: 4096 to 16384")] = ITERATIONS,
    password_file: Annotated[Path | None, Parameter(help="a file whose first line is the password")] = None,
    cluster: OfCluster = HERE,
) -> None:
    """Add a user, or give it another password.

    The password is asked for, or read from a file or the standard input. It does not leave this process: the cluster
    gets a salted hash.
    """
    alter_credentials(cluster.config, upsertion(name, mechanism, password_for(name, password_file), iterations))
    print(f"User {name} can log in with {mechanism}.")


@app.command
def remove(
    name: Name,
    *,
    mechanism: Annotated[Mechanism | None, Parameter(help="keep the user's other mechanism")] = None,
    cluster: OfCluster = HERE,
) -> None:
    """Remove a user's credentials. Connections that the user has stay open until they must authenticate again."""
    found = [one.mechanism for one in credentials_of(cluster.config, name) if mechanism in (None, one.mechanism)]
    if not found:
        fail(
            f"user {name} has no credential{f' of {mechanism}' if mechanism else ''}",
            "`strandline users list` lists the credentials",
        )
    for each in found:  # a request may change a user once
        alter_credentials(cluster.config, deletion(name, each))
    print(f"User {name} cannot log in with {' or '.join(found)} any more.")


def row_of(one: UserCredential) -> Row:
    return {"user": one.user, "mechanism": one.mechanism, "iterations": one.iterations}


def table_of(rows: list[Row]) -> Fitted:
    table = Fitted(Column("user"), Column("mechanism"), Column("iterations", "right"))
    for row in rows:
        table.add_row(row["user"], row["mechanism"], str(row["iterations"]))
    return table


def line_of(row: Row) -> str:
    return f"{row['user']} {row['mechanism']} iterations={row['iterations']}"
