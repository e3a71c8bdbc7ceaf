"""What a listener is, and what all listeners of a node keep to."""

from strandline.base.value import Value
from strandline.server.network.limits import LimitsConfig
from strandline.server.tls.listener_tls import ListenerTls


class NetConfig(Value, frozen=True):
    """What the listeners need of the node's configuration."""

    request_bytes_max: int = 100 * 1024 * 1024
    send_buffer_bytes: int = 100 * 1024  # -1: the system's default
    receive_buffer_bytes: int = 100 * 1024
    backlog: int = 50
    idle_ms_max: int = 600_000
    believes_strangers: bool = False  # everybody may act as a node
    setup_ms_max: int = 30_000  # until the first request; 0 or less: as long as it may be idle
    queued_request_bytes_max: int = -1  # −1: no bound
    limits: LimitsConfig = LimitsConfig()


class Listener(Value, frozen=True):
    name: str
    host: str
    port: int  # 0: any free port
    is_controller: bool
    tls: ListenerTls | None = None  # None: it is not encrypted
    stranger_bytes_max: int | None = None  # a request's, until it has proved by SASL who it is; None: it need not
