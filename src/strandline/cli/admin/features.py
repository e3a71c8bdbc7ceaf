"""`strandline features`: which features the cluster has and at which level; kafka-features, in short."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from strandline.cli.connect import HERE, Json, OfCluster, fail
from strandline.cli.show import Column, Fitted, show_rows
from strandline.client.admin.features import features_of
from strandline.client.ask import Servers, ask_any
from strandline.metadata.features import METADATA_VERSION, RELEASE_OF
from strandline.wire.messages.cluster.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

app = App(name="features", help="Show the features of a cluster, and change their levels.")
Levels = Annotated[list[str], Parameter(name="--feature", negative="")]
Flag = Annotated[bool, Parameter(negative="")]


@app.command
def describe(*, cluster: OfCluster = HERE, json_output: Json = False) -> None:
    """Show each feature: its level, and the levels that the nodes support."""
    answer = features_of(cluster.config)
    in_force = {row.name: row.max_version_level for row in answer.finalized_features}
    rows = [
        {
            "feature": row.name,
            "min_supported": row.min_version,
            "max_supported": row.max_version,
            "level": in_force.get(row.name, 0),
            "epoch": answer.finalized_features_epoch,
        }
        for row in sorted(answer.supported_features, key=lambda row: row.name)
    ]
    show_rows(rows, json_output, table_of, line_of)


@app.command
def upgrade(*, feature: Levels, dry_run: Flag = False, cluster: OfCluster = HERE) -> None:
    """Raise feature levels: all the given features, or none.

    Parameters
    ----------
    feature
        NAME=LEVEL; may be repeated
    dry_run
        check whether it is possible, and change nothing
    """
    update("upgraded", [parsed(text) for text in feature], UPGRADE, dry_run, cluster.config)


@app.command
def downgrade(*, feature: Levels, unsafe: Flag = False, dry_run: Flag = False, cluster: OfCluster = HERE) -> None:
    """Lower feature levels: all the given features, or none.

    Parameters
    ----------
    feature
        NAME=LEVEL; may be repeated
    unsafe
        downgrade even if that loses metadata
    dry_run
        check whether it is possible, and change nothing
    """
    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    update("downgraded", [parsed(text) for text in feature], kind, dry_run, cluster.config)


@app.command
def disable(*, feature: Levels, unsafe: Flag = False, dry_run: Flag = False, cluster: OfCluster = HERE) -> None:
    """Disable features: the same as a downgrade to level 0.

    Parameters
    ----------
    feature
        the feature's name; may be repeated
    unsafe
        downgrade even if that loses metadata
    dry_run
        check whether it is possible, and change nothing
    """
    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    update("disabled", [(name, 0) for name in feature], kind, dry_run, cluster.config)


def parsed(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals or not level.strip().isdigit():
        fail(f"'{text}' is not NAME=LEVEL", "for example eligible.leader.replicas.version=1", status=2)
    return name.strip(), int(level)


def update(done: str, levels: list[tuple[str, int]], kind: int, dry_run: bool, bootstrap: Servers) -> None:
    rows = tuple(FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level in levels)
    ask_any(bootstrap, UpdateFeaturesRequest(feature_updates=rows, validate_only=dry_run), 2)
    for name, level in levels:
        print(f"{name} {'could be' if dry_run else 'was'} {done} to {shown(name, level)}")


def shown(name: str, level: int) -> str:
    release = RELEASE_OF.get(level) if name == METADATA_VERSION else None
    return str(level) if release is None else f"{level} ({release})"


def table_of(rows: list[dict[str, Any]]) -> Fitted:
    table = Fitted(Column("feature"), Column("level"), Column("supported"))
    for row in rows:
        low, high = (shown(row["feature"], row[key]) for key in ("min_supported", "max_supported"))
        table.add_row(row["feature"], shown(row["feature"], row["level"]), f"{low} to {high}")
    return table


def line_of(row: dict[str, Any]) -> str:
    low, high = (shown(row["feature"], row[key]) for key in ("min_supported", "max_supported"))
    return f"{row['feature']}  level {shown(row['feature'], row['level'])}  supported {low} to {high}"
