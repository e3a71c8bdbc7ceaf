"""What consumers of the classic protocol put into JoinGroup and SyncGroup, beside kio; newer and damaged texts."""

from importlib import import_module
from typing import Any

import pytest
from tests.rows import each
from tests.wire.test_kio import Generator, kio_bytes

from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.codec_plan import layout_of
from strandline.wire.compress import Corrupt
from strandline.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_embedded,
    encode_embedded,
)

NAMES = {
    ConsumerProtocolSubscription: "consumer_protocol_subscription",
    ConsumerProtocolAssignment: "consumer_protocol_assignment",
}


@each(("cls", "version"), [(cls, version) for cls in NAMES for version in cls.versions])
def test_our_bytes_are_kios_bytes(cls: Any, version: int) -> None:
    kio = getattr(import_module(f"kio.schema.{NAMES[cls]}.v{version}.data"), cls.__name__)
    for seed, filled in enumerate((1.0, 0.0, 0.5)):
        value = Generator(seed, filled=filled).group(layout_of(cls, version), kio)
        data = kio_bytes(value.kios)
        assert encode_bytes(value.ours, version) == data
        assert decode_all(cls, version, data) == value.ours
        assert decode_embedded(cls, encode_embedded(value.ours, version)) == value.ours


def test_of_a_newer_version_what_is_known_is_read() -> None:
    value = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="t", partitions=(0, 2)),))
    newer = (9).to_bytes(2, "big") + encode_bytes(value, 3) + b"more"
    assert decode_embedded(ConsumerProtocolAssignment, newer) == value


@each("data", [b"", b"\0", b"\xff\xff", b"\0\0\0\0\0\x01", b"\0\0\x7f\xff\xff\xff", b"all"])
def test_what_is_no_such_text_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_embedded(ConsumerProtocolSubscription, data)
