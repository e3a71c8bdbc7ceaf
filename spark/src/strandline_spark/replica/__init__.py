"""Replicas as they lie on disk, or as brokers show them: the source of `format("strandline-replica")`.

Read a log while its broker writes to it: what is read is what was there when the read was planned, or `LogChanged`.
"""

from strandline_spark.replica.errors import DamagedLog, LogChanged, UnreadableLog
from strandline_spark.replica.source import ReplicaSource

__all__ = ["DamagedLog", "LogChanged", "ReplicaSource", "UnreadableLog"]
