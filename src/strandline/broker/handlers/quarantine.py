"""Quarantine: another node has found requests that no node must handle again."""

import re

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.broker.faults.quarantine import Quarantined
from strandline.broker.handlers.port import NodePort
from strandline.wire.api import API_BY_KEY
from strandline.wire.messages.own.quarantine import QuarantinedRequest, QuarantineRequest, QuarantineResponse

ROWS_MAX = 100  # a request stops a node by itself, or because of one that the node asked itself
DIGEST = re.compile("[0-9a-f]{32}")


def why_no_row(row: QuarantinedRequest) -> str | None:
    if row.api not in API_BY_KEY or row.version not in API_BY_KEY[row.api].request.versions:
        return "there is no such API or version"
    return None if DIGEST.fullmatch(row.digest) else "this is not a digest"


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    request: QuarantineRequest = received.message
    if len(request.requests) > ROWS_MAX or any(why_no_row(row) for row in request.requests):
        return [Reply(received.to, QuarantineResponse(error_code=ErrorCode.INVALID_REQUEST))]
    node.quarantine_requests(tuple(Quarantined(row.api, row.version, row.digest) for row in request.requests))
    return [Reply(received.to, QuarantineResponse())]
