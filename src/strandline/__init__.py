"""Strandline: a replicated log that speaks Kafka's protocol and never takes back what it acknowledged."""

from strandline.base import VERSION

__version__ = VERSION
