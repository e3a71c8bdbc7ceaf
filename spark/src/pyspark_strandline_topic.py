"""Spark finds the format "strandline" by this module's name, without a register() call."""

from strandline_spark.topic.source import DefaultSource

__all__ = ["DefaultSource"]
