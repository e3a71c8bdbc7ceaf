"""The table of what each command on Spark prints with --json. `strandline schema` finds it by its entry point."""

HERE = "strandline_spark.printed"
TABLES, CHECKS, LAG, CAMPAIGNS = (f"{HERE}.{name}" for name in ("tables", "checks", "lag", "campaigns"))

# In the form of `strandline.cli.printed.schemas`.
PRINTED = {
    "pipeline ingest": (f"{TABLES}:Ingested",),
    "pipeline emit": (f"{TABLES}:Emitted",),
    "pipeline settle": (f"[{TABLES}:OpenTransaction]",),
    "pipeline audit": (f"{CHECKS}:Audited",),
    "pipeline lag": (f"[{LAG}:LagSample]", f"{LAG}:LagReport"),
    "pipeline simulate": (f"{CAMPAIGNS}:Simulated",),
    "pipeline histories": (f"{CHECKS}:HistoriesJudged",),
    "demo pipeline": (f"{CHECKS}:PipelineShown",),
}
LINES = ("pipeline lag",)  # one document in each line
