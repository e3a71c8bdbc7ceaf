"""Answers with an error, for any API: made from the request, or from the answer that the node gave.

As Kafka does, an error stands wherever the response has a field for one, and the answer names the topics, partitions
or groups that the request names. Fields of one meaning have one name in requests and responses, but for `SAME`.
"""

from typing import Any, get_args, get_origin, get_type_hints

from msgspec.structs import replace

from strandline.wire.api import response_of
from strandline.wire.schema import Group, Message

ERROR = "error_code"
SAME = ({"partition", "partition_index", "index"}, {"name", "topic"})
NOT_ASKED_FOR = ("forgotten_topics_data",)
INVALID = {"base_offset": -1, "high_watermark": -1, "offset": -1, "committed_offset": -1, "node_id": -1}


def refusal(request: Message, error: int) -> Message:
    """The answer to this request, with this error and nothing else."""
    found: Message = mirrored(request, response_of(request.api_key), error)
    return found


def with_error(answer: Any, error: int) -> Any:
    """The same answer, with this error in every field for one."""
    changes: dict[str, Any] = {}
    for name in answer.__struct_fields__:
        value = getattr(answer, name)
        if name == ERROR:
            changes[name] = error
        elif name in INVALID and ERROR in answer.__struct_fields__:
            changes[name] = INVALID[name]
        elif isinstance(value, tuple) and value and isinstance(value[0], Group):
            changes[name] = tuple(with_error(item, error) for item in value)
    return replace(answer, **changes)


def mirrored(asked: Any, cls: type[Any], error: int) -> Any:
    """A group or message of the class for what was asked: a group, a name or a number."""
    hints = get_type_hints(cls)
    values: dict[str, Any] = {}
    for name in cls.__struct_fields__:
        item = group_in(hints[name])
        if name == ERROR:
            values[name] = error
        elif item is not None:
            values[name] = tuple(mirrored(one, item, error) for one in asked_for(asked)) if has_error(item) else ()
        elif name in INVALID:
            values[name] = INVALID[name]
        elif (found := value_of(asked, name)) is not None:
            values[name] = found
    if isinstance(asked, str | int):
        values |= {name: asked for name in first_of(cls, type(asked)) if name not in values}
    return cls(**values)


def group_in(hint: Any) -> type[Group] | None:
    """The group of which this is an array, if it is one."""
    for part in (hint, *get_args(hint)):
        item = get_args(part)[0] if get_origin(part) is tuple else None
        if isinstance(item, type) and issubclass(item, Group):
            return item
    return None


def has_error(cls: type[Any]) -> bool:
    """In it, or in what it has arrays of."""
    groups = (group_in(hint) for hint in get_type_hints(cls).values())
    return ERROR in cls.__struct_fields__ or any(has_error(group) for group in groups if group is not None)


def asked_for(asked: Any) -> tuple[Any, ...]:
    """What an array of the answer is about: the first array of the request that is not empty."""
    names = getattr(asked, "__struct_fields__", ())
    arrays = [getattr(asked, one) for one in names if one not in NOT_ASKED_FOR]
    return next((array for array in arrays if isinstance(array, tuple) and array), ())


def value_of(asked: Any, name: str) -> Any:
    """What the asked group has for a field of this name; None: nothing that would fit."""
    names = next((same for same in SAME if name in same), {name})
    found = [getattr(asked, one) for one in names if one in getattr(asked, "__struct_fields__", ())]
    return next((value for value in found if not isinstance(value, tuple)), None)


def first_of(cls: type[Any], kind: type[Any]) -> list[str]:
    """The first field of this kind, if there is one: what an array of plain names or numbers asked for."""
    hints = get_type_hints(cls)
    return [name for name in cls.__struct_fields__ if name != ERROR and kind in (hints[name], *get_args(hints[name]))][
        :1
    ]
