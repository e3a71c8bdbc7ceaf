"""Several buffers to a transport with TLS."""

import asyncio
from collections.abc import Callable, Sequence

from strandline.base.ports import Buffer

JOINED_BYTES_MAX = 64 * 1024


def joining(transport: asyncio.Transport) -> Callable[[Sequence[Buffer]], None]:
    """Writes to a transport with TLS, which makes a record of each buffer: small ones are joined, which is cheaper;
    a large one is cut anyway, and would be copied once more."""

    def write(buffers: Sequence[Buffer]) -> None:
        if len(buffers) > 1 and sum(map(len, buffers)) <= JOINED_BYTES_MAX:
            transport.write(b"".join(buffers))
        else:
            transport.writelines(buffers)

    return write
