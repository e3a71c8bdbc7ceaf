"""The clean-shutdown marker (KIP-966): written last at a controlled stop, with the broker epoch, and taken away first
at the next start. A missing, damaged or disagreeing marker in any directory means that the stop was not clean."""

from collections.abc import Sequence

import msgspec

from strandline.base.ports import Disk

FILE = ".kafka_cleanshutdown"


class Marker(msgspec.Struct, rename="camel"):
    version: int
    broker_epoch: int


def write_clean_shutdown(disk: Disk, directories: Sequence[str], broker_epoch: int) -> None:
    content = msgspec.json.encode(Marker(version=0, broker_epoch=broker_epoch))
    for directory in directories:
        disk.save(f"{directory}/{FILE}", content)


def take_clean_shutdown(disk: Disk, directories: Sequence[str]) -> int | None:
    """Remove the markers, durably; return the broker epoch that they all name, else None."""
    epochs: list[int | None] = []
    for directory in directories:
        path = f"{directory}/{FILE}"
        content = disk.read_file(path)
        try:
            epochs.append(None if content is None else msgspec.json.decode(content, type=Marker).broker_epoch)
        except msgspec.MsgspecError:
            epochs.append(None)
        if content is not None:
            disk.remove(path)
            disk.sync([directory])
    return epochs[0] if epochs and len(set(epochs)) == 1 else None
