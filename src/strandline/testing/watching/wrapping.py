"""Which watched client stands for one of an application: by the library that it is from, without importing any."""

from importlib import import_module
from typing import Any

from strandline.testing.watching.recording import Recording

MODULES = {
    "confluent_kafka": "confluent",
    "cimpl": "confluent",
    "aiokafka": "aiokafka_clients",
    "kafka": "kafka_python",
}
UNKNOWN = "confluent_kafka.aio"  # its methods are coroutines


def wrapped(client: Any, recording: Recording, process: str) -> Any:
    """Raises TypeError for what is not a producer or consumer of a library that is known."""
    for cls in type(client).__mro__:
        name = MODULES.get(cls.__module__.partition(".")[0])
        if name is not None and not cls.__module__.startswith(UNKNOWN):
            module = import_module(f"strandline.testing.watching.{name}")
            made = module.Producer if is_producer(client) else module.Consumer
            return getattr(module, cls.__name__, made)(client, recording, process)
    raise TypeError(f"{type(client).__name__} is not a client of confluent-kafka, aiokafka or kafka-python")


def is_producer(client: Any) -> bool:
    return hasattr(client, "produce") or hasattr(client, "send")
