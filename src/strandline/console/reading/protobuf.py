"""Protobuf by a FileDescriptorSet that the user gives, as `protoc --include_imports --descriptor_set_out` writes it."""

from collections.abc import Callable
from typing import Any

from strandline.client.errors import BadOption, StrandlineError


def protobuf_reader(descriptors: bytes, message: str) -> Callable[[bytes], Any]:
    """What decodes one message, and raises ValueError. `message`: the whole name of its type; empty if there is only
    one. Raises BadOption."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
        from google.protobuf.message import DecodeError
    except ImportError:
        raise StrandlineError("Protobuf needs protobuf", "pip install 'strandline[protobuf]'") from None
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
        pool = descriptor_pool.DescriptorPool()
        for file in files:
            pool.Add(file)
        names = [name for file in files for name in names_in(file)]
        chosen = message or (names[0] if len(names) == 1 else "")
        if not chosen or chosen not in names:
            raise BadOption(
                f"'{message}' is not a message of these descriptors" if message else "name the type of the message",
                f"there are {', '.join(names[:20]) or 'none'}",
            )
        cls = message_factory.GetMessageClass(pool.FindMessageTypeByName(chosen))
    except (DecodeError, TypeError, KeyError) as error:
        advice = "write one with protoc --include_imports --descriptor_set_out=FILE"
        raise BadOption(f"this is not a whole FileDescriptorSet: {error}", advice) from None

    def read(content: bytes) -> Any:
        try:
            return json_format.MessageToDict(
                cls.FromString(content), preserving_proto_field_name=True, descriptor_pool=pool
            )
        except (DecodeError, TypeError, json_format.Error) as error:
            raise ValueError(str(error)) from None

    return read


def names_in(file: Any) -> list[str]:
    """Of all messages of a file, those in messages too."""
    prefix = f"{file.package}." if file.package else ""
    found, left = [], [(f"{prefix}{one.name}", one) for one in file.message_type]
    while left:
        name, one = left.pop(0)
        if not one.options.map_entry:
            found.append(name)
        left += [(f"{name}.{inner.name}", inner) for inner in one.nested_type]
    return found
