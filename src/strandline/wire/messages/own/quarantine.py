"""Quarantine (key 1003, our own): these requests have stopped a node. Whoever is asked refuses them from now on.

A node sends it to all other nodes before it stops. See `broker.faults`.
"""

from strandline.wire.schema import Group, Int16, Int32, Message, String, message


class QuarantinedRequest(Group, frozen=True):
    api: Int16 = 0
    version: Int16 = 0
    digest: String = ""  # in hexadecimal digits


@message(key=1003, kind="request", versions="0", flexible="0+")
class QuarantineRequest(Message, frozen=True):
    requests: tuple[QuarantinedRequest, ...] = ()


@message(key=1003, kind="response", versions="0", flexible="0+")
class QuarantineResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
