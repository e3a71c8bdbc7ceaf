"""`strandline pipeline`: topics, tables and replicas through Spark. One job, one file.

Spark is imported when a job runs, so that the other commands start without it.
"""

from cyclopts import App

from strandline_spark.cli.audit import audit
from strandline_spark.cli.emit import emit
from strandline_spark.cli.histories import histories
from strandline_spark.cli.ingest import ingest
from strandline_spark.cli.lag import lag
from strandline_spark.cli.settle import settle
from strandline_spark.cli.simulate import simulate

app = App(name="pipeline", help="Read, write and check topics, tables and whole clusters with Spark.")
app.command(ingest)
app.command(emit)
app.command(settle)
app.command(audit)
app.command(lag)
app.command(simulate)
app.command(histories)
