"""A password or key: it travels with a configuration, and never into a text by accident."""

from strandline.base.value import Value


class Secret(Value, frozen=True):
    reveal: str

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__
