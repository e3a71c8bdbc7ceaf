"""All commands but `node`, which must start fast and is handled before this is imported."""

from importlib.metadata import entry_points
from pathlib import Path

from cyclopts import App

from strandline.base import VERSION
from strandline.cli.admin import configs, features, log_dirs, reassignments, topics
from strandline.cli.admin.explain import explain
from strandline.cli.admin.leader_election import leader_election
from strandline.cli.admin.losses import losses
from strandline.cli.admin.metrics import metrics
from strandline.cli.lab import last_replica, scale
from strandline.cli.lab.model import model
from strandline.cli.lab.sim import sim
from strandline.cli.nodes.format import format_storage, random_uuid
from strandline.cli.nodes.up import up
from strandline.cli.records.consume import consume
from strandline.cli.records.produce import produce
from strandline.server.node import run_node

app = App(name="strandline", version=VERSION, help="A replicated log that speaks Kafka's protocol.")
app.command(up)
app.command(topics.app)
app.command(configs.app)
app.command(features.app)
app.command(reassignments.app)
app.command(leader_election)
app.command(losses)
app.command(explain)
app.command(log_dirs.app)
app.command(produce)
app.command(consume)
app.command(format_storage, name="format")
app.command(random_uuid)
app.command(metrics)
app.command(last_replica.app)
app.command(scale.app)
app.command(sim)
app.command(model)
for parent, group in ((app, "strandline.commands"), (last_replica.app, "strandline.demos")):
    for found in entry_points(group=group):  # other distributions, as strandline-spark, bring commands of their own
        parent.command(found.value, name=found.name)


@app.command
def node(*, config: Path) -> int:
    """Run one node until it is told to stop (SIGTERM or Ctrl-C: a controlled shutdown).

    Parameters
    ----------
    config
        the node's properties, with Kafka's names
    """
    return run_node(["--config", str(config)])
