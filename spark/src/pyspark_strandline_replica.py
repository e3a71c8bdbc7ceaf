"""PySpark imports modules with such names by itself: `spark.read.format("strandline-replica")` works without more."""

from strandline_spark.replica import ReplicaSource as DefaultSource

__all__ = ["DefaultSource"]
