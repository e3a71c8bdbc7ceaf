"""All commands but `node`, which must start fast and is handled before this is imported."""

from pathlib import Path

from cyclopts import App

from strandline.base import VERSION
from strandline.cli import configs, features, last_replica, log_dirs, pipeline, reassignments, scale, topics
from strandline.cli.consume import consume
from strandline.cli.explain import explain
from strandline.cli.format import format_storage, random_uuid
from strandline.cli.leader_election import leader_election
from strandline.cli.losses import losses
from strandline.cli.metrics import metrics
from strandline.cli.model import model
from strandline.cli.node import run_node
from strandline.cli.pipeline.demo import pipeline_demo
from strandline.cli.produce import produce
from strandline.cli.sim import sim
from strandline.cli.up import up

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
last_replica.app.command(pipeline_demo, name="pipeline")
app.command(last_replica.app)
app.command(scale.app)
app.command(sim)
app.command(model)
app.command(pipeline.app)


@app.command
def node(*, config: Path) -> int:
    """Run one node until it is told to stop (SIGTERM or Ctrl-C: a controlled shutdown).

    Parameters
    ----------
    config
        the node's properties, with Kafka's names
    """
    return run_node(["--config", str(config)])
