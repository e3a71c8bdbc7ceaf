"""Fetch: Read on each topic, and who may use which fetch session (KIP-227).

A session's partitions are judged when they are named, not with every Fetch: so a session is for one principal on one
host, by the ACLs that were in force when it began. When one of these is another, the client gets
FETCH_SESSION_ID_NOT_FOUND and names all of its partitions anew.

A Fetch that names a partition which is not permitted is served without a session, so that each of its answers has the
error, as Kafka's have.

Invariant: `permitted` has only sessions all of whose partitions were permitted to its `Rights`.
"""

from typing import Any

from msgspec.structs import replace

from strandline.base.effects import Received, Reply
from strandline.base.errors import ErrorCode
from strandline.broker.authorizing.verdict import Split, Verdict, may, refuse
from strandline.broker.handlers.port import NodePort, broker_of
from strandline.metadata.security.acls import AclOperation
from strandline.security.acls.authorizer import Rights
from strandline.wire.messages.records.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

TOPIC_IDS_SINCE = 13
REPLICA_STATE_SINCE = 15
FULL_EPOCH, FINAL_EPOCH, NO_SESSION = 0, -1, 0
READ = int(AclOperation.READ)
KNOWN_MIN = 100  # sessions that may be remembered, however few slots there are


class FetchSessions:
    def __init__(self) -> None:
        self.permitted: dict[int, Rights] = {}  # by session id

    def fetch(self, node: NodePort, received: Received, rights: Rights) -> Verdict:
        request: FetchRequest = received.message
        version = received.to.api_version
        if (request.replica_state.replica_id if version >= REPLICA_STATE_SINCE else request.replica_id) >= 0:
            if may(rights, AclOperation.CLUSTER_ACTION):
                return received
            return refuse(received, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        refused: list[FetchableTopicResponse] = []
        by_id = version >= TOPIC_IDS_SINCE
        for topic in request.topics:
            if (topic.topic or topic.topic_id) not in rights.readable:
                row = refused_row(node, topic, rights, by_id=by_id)
                if row is not None:
                    refused.append(row)
        if request.session_epoch > FULL_EPOCH:
            # guard: session-outlives-its-rights
            if self.permitted.get(request.session_id) is rights and not refused:
                return received
            return self.begin_anew(received, rights)
        if refused:
            return served_alone(received, refused)
        if request.session_epoch == FINAL_EPOCH or not request.topics:
            return received
        return Split(received, lambda response: self.remember(node, response, rights))

    def begin_anew(self, received: Received, rights: Rights) -> Verdict:
        """The client names all of its partitions in its next Fetch. Its own session is over."""
        request: FetchRequest = received.message
        assert request.session_epoch > FULL_EPOCH, "it goes on with a session"
        earlier = self.permitted.get(request.session_id)
        gone = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if earlier is None or (earlier.principal, earlier.host) != (rights.principal, rights.host):
            return [Reply(received.to, gone)]
        del self.permitted[request.session_id]
        ending = replace(request, session_epoch=FINAL_EPOCH, topics=(), forgotten_topics_data=())
        return Split(replace(received, message=ending), lambda response: gone)

    def remember(self, node: NodePort, response: Any, rights: Rights) -> Any:
        if response.session_id != NO_SESSION:
            sessions = broker_of(node).replicas.fetching.sessions
            if len(self.permitted) >= max(KNOWN_MIN, 2 * sessions.config.fetch_session_slots):
                alive = sessions.sessions
                self.permitted = {known: of for known, of in self.permitted.items() if known in alive}
            self.permitted[response.session_id] = rights
        return response


def refused_row(node: NodePort, topic: FetchTopic, rights: Rights, *, by_id: bool) -> FetchableTopicResponse | None:
    """An unknown id is refused, too: it might become known while the Fetch waits, and nobody would judge it."""
    name: str | None = topic.topic
    if by_id:
        known = node.image.topics.get(topic.topic_id)
        name = None if known is None else known.name
    if name is not None and rights.may_topic(READ, name, topic.topic_id if by_id else name, rights.readable):
        return None
    error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rows = tuple(
        PartitionData(partition_index=p.partition, error_code=error, high_watermark=-1, records=b"")
        for p in topic.partitions
    )
    return FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=rows)


def served_alone(received: Received, refused: list[FetchableTopicResponse]) -> Verdict:
    """Without what is refused, and without a session; the one that it names ends."""
    assert refused, "else it is served as it is"
    request: FetchRequest = received.message
    names = {(row.topic, row.topic_id) for row in refused}
    kept = tuple(topic for topic in request.topics if (topic.topic, topic.topic_id) not in names)
    return Split(
        replace(received, message=replace(request, session_epoch=FINAL_EPOCH, topics=kept)),
        lambda response: replace(response, responses=(*response.responses, *refused)),
    )
