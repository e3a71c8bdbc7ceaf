"""How commands that show a real client configure it: confluent-kafka, which is librdkafka."""

import logging
from typing import Any

from confluent_kafka import KafkaException

# librdkafka reports every lost connection on its own; a command says once what went wrong.
quiet = logging.getLogger("strandline.client.librdkafka")
quiet.addHandler(logging.NullHandler())
quiet.propagate = False


def client_config(bootstrap: str, **options: Any) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "socket.timeout.ms": 10_000, "logger": quiet, **options}


def why(error: KafkaException) -> str:
    return str(error.args[0].str()) if error.args else str(error)
