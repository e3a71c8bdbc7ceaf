"""`strandline pipeline`: topics, tables and replicas through Spark. One job, one file.

Spark is imported when a job runs, so that the other commands start without it.
"""

from cyclopts import App

from strandline.cli.pipeline.audit import audit
from strandline.cli.pipeline.emit import emit
from strandline.cli.pipeline.histories import histories
from strandline.cli.pipeline.ingest import ingest
from strandline.cli.pipeline.lag import lag
from strandline.cli.pipeline.simulate import simulate

app = App(name="pipeline", help="Topics, tables and whole clusters through Spark.")
app.command(ingest)
app.command(emit)
app.command(audit)
app.command(lag)
app.command(simulate)
app.command(histories)
