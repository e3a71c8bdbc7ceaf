"""The effects that the core may ask of a driver, and the events with which the driver answers.

No promise before its proof: an effect that promises a machine something (a `Reply`, a vote in a `Send`) is emitted
only while handling the event that proves it (`Synced` for durable bytes).

`token` fields are opaque to the driver: it returns them unchanged in the answering event. Each machine has types of its
own for them, immutable ones, so that the node can route the answer with one look.
"""

from enum import Enum
from typing import Any

from strandline.base.ids import NodeId
from strandline.base.ports import DiskError, DiskFull
from strandline.base.value import Value

Token = Any  # a Value of the machine that asks


class Endpoint(Value, frozen=True):
    host: str
    port: int


# --- events


class ReplyTo(Value, frozen=True):
    """Where the answer of one request goes. The driver sends answers of one connection in the order of requests."""

    connection: int
    sequence: int  # counts requests of this connection, from 0
    correlation_id: int
    api_key: int
    api_version: int
    stamp: int = 0  # the driver's own: when it read the request, if it measures


NAME_SHOWN = 100  # letters of a client id


ANONYMOUS = "User:ANONYMOUS"  # KafkaPrincipal.ANONYMOUS: nobody asked who it is


class Caller(Value, frozen=True):
    """Who asked: for permissions, group members, quotas and error messages."""

    client_id: str
    host: str  # of the remote side, without port
    listener: str  # the listener name: "PLAINTEXT", "CONTROLLER"
    principal: str = ANONYMOUS  # as the connection proved it, "TYPE:NAME"
    is_node: bool = False  # it proved that it knows the cluster's secret
    port: int = 0  # of the remote side, if it has one

    @property
    def named(self) -> str:
        """For people, in a line: whom it has proved to be comes first, since a client may call itself anything."""
        name = in_a_line(self.client_id) or "somebody"
        if self.principal == ANONYMOUS:
            return f"{name} at {self.host}"
        return f"{in_a_line(self.principal)} ({name}) at {self.host}"


def in_a_line(text: str) -> str:
    shown = "".join(letter for letter in text[:NAME_SHOWN] if letter.isprintable())
    assert shown.isprintable(), "one line, whatever the client calls itself"
    return shown


class Received(Value, frozen=True):
    """A request arrived and was parsed. `message` is one of wire.messages' requests."""

    to: ReplyTo
    caller: Caller
    message: Any


class Answered(Value, frozen=True):
    """The answer to a `Send`."""

    token: Token
    message: Any


class Failure(Enum):
    """Why a `Send` has no answer. REFUSED is proof that no process listens there; the others prove nothing."""

    REFUSED = "connection refused"
    CLOSED = "connection closed before the answer"
    TIMED_OUT = "no answer in time"
    MALFORMED = "the answer could not be parsed"


class Failed(Value, frozen=True):
    """A `Send` that will not be answered; whether the peer acted on it is unknown unless REFUSED."""

    token: Token
    why: Failure


class Synced(Value, frozen=True):
    """Everything that a `Sync` or `Save` named is durable."""

    token: Token


class SyncFailed(Value, frozen=True):
    """What a `Sync` or `Save` named may not be durable, nor ever become so: the kernel forgets what it failed on."""

    token: Token
    why: str
    is_full: bool = False  # a `Save` that found no room: the old content is there

    def __post_init__(self) -> None:
        assert self.why

    @property
    def error(self) -> DiskError:
        return DiskFull(self.why) if self.is_full else DiskError(self.why)


class Warmed(Value, frozen=True):
    """What a `Warm` named was read into the page cache, or could not be: whoever reads it now learns why."""

    token: Token


class Probed(Value, frozen=True):
    """The outcome of a `Probe`: None if something accepted the connection."""

    token: Token
    why: Failure | None


class Disconnected(Value, frozen=True):
    """The remote side of an inbound connection closed it, or the connection broke."""

    connection: int


Event = Received | Answered | Failed | Synced | SyncFailed | Warmed | Probed | Disconnected

# --- effects


class Send(Value, frozen=True):
    """Ask a peer. `channel` names the connection: requests on one (endpoint, channel) share a connection and are
    answered in order, so long polls have a channel of their own. `node`: whom it is for, and nobody else at this
    endpoint."""

    endpoint: Endpoint
    channel: str
    message: Any
    version: int
    timeout_ms: int
    token: Token
    node: NodeId


class Reply(Value, frozen=True):
    """Answer a request. `message` None means: no answer is sent (Produce with acks=0)."""

    to: ReplyTo
    message: Any


class Sync(Value, frozen=True):
    """Make these files or directories durable, then answer `Synced(token)`; or `SyncFailed(token)`, if it is the
    replicas' (`ReplicaToken`): they can do without a directory. For all others a failure ends the node."""

    paths: tuple[str, ...]
    token: Token


class Save(Value, frozen=True):
    """Replace a file atomically and durably (write, fsync, rename, fsync the directory), then answer as to a
    `Sync`. Saves of one path become durable in their order, and one that `Disk.save` has overtaken since it was asked
    for is not written, only answered: what is there is newer, and durable."""

    path: str
    content: bytes
    token: Token
    since: int = 0  # `Disk.saves(path)` when it was asked for

    def __post_init__(self) -> None:
        assert self.path and self.since >= 0


class Warm(Value, frozen=True):
    """Read `size` bytes of a file from `position` into the page cache, where nobody waits for it; begin to read what
    follows; and answer `Warmed(token)`. Nothing is changed by it."""

    path: str
    position: int
    size: int
    token: Token

    def __post_init__(self) -> None:
        assert self.position >= 0 and self.size > 0


class Remove(Value, frozen=True):
    """Remove these directories and what is in them, some time: nobody looks there any more. Not answered. What the end
    of the process, or the disk, leaves of them the next start removes."""

    paths: tuple[str, ...]

    def __post_init__(self) -> None:
        assert self.paths and all(self.paths)


class Probe(Value, frozen=True):
    """Connect to an endpoint and close at once; answered by `Probed`."""

    endpoint: Endpoint
    timeout_ms: int
    token: Token


class Authenticated(Value, frozen=True):
    """The other side of an inbound connection has proved who it is: this holds for its next requests."""

    connection: int
    principal: str
    is_node: bool
    lifetime_ms: int = 0  # after which it has to prove it again before anything else (KIP-368); 0: never

    def __post_init__(self) -> None:
        assert ":" in self.principal
        assert self.lifetime_ms >= 0


class Throttle(Value, frozen=True):
    """Read nothing from an inbound connection for a time, from now on: its client has used up a quota (KIP-219)."""

    connection: int
    ms: int

    def __post_init__(self) -> None:
        assert self.ms > 0


class Close(Value, frozen=True):
    """Close an inbound connection after what is already queued for it."""

    connection: int
    why: str

    def __post_init__(self) -> None:
        assert self.why


class Refuse(Value, frozen=True):
    """Answer a request, and then close its connection, both after `after_ms` (KIP-306); until then nothing more is read
    from it."""

    to: ReplyTo
    message: Any
    why: str
    after_ms: int

    def __post_init__(self) -> None:
        assert self.why and self.after_ms >= 0


LEVELS = ("debug", "info", "warning", "error")


class Report(Value, frozen=True):
    """One line for the operator's log."""

    level: str  # one of `LEVELS`
    text: str

    def __post_init__(self) -> None:
        assert self.level in LEVELS
        assert self.text


class ToController(Value, frozen=True):
    """Ask the active controller, whoever that is. The node turns it into a `Send`, or into
    `Failed(token, CLOSED)` when no controller is known."""

    message: Any
    version: int
    timeout_ms: int
    token: Token


class ToBroker(Value, frozen=True):
    """Ask a broker of the cluster, on the listener for other brokers. The node turns it into a `Send`, asks itself if
    it is that broker, or answers `Failed(token, CLOSED)` when no such broker is alive. `channel`: as for a `Send`."""

    node: NodeId
    channel: str
    message: Any
    version: int
    timeout_ms: int
    token: Token


class Halt(Value, frozen=True):
    """The node must stop: `why` is for the operator. Status 0 after a controlled shutdown."""

    why: str
    status: int

    def __post_init__(self) -> None:
        assert self.why
        assert 0 <= self.status < 256, "a process can end with it"


class AwaitRoom(Value, frozen=True):
    """The node goes on without these log directories, which are full: shut it down when one has room again, and begin
    it anew. Takes the place of the one before: without paths there is nothing to wait for. Not answered."""

    paths: tuple[str, ...]


Effect = (
    Send
    | Reply
    | Authenticated
    | Throttle
    | Sync
    | Save
    | Warm
    | Remove
    | Probe
    | Close
    | Refuse
    | Report
    | ToController
    | ToBroker
    | Halt
    | AwaitRoom
)
