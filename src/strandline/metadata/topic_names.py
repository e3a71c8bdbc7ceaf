"""Which names a topic may have. In Kafka's words, which operators search for."""

from collections.abc import Iterable

LONGEST = 249
LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def why_illegal(name: str) -> str | None:
    """Why may no topic have this name? None means one may."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > LONGEST:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {LONGEST}"
    if not LEGAL.issuperset(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def why_colliding(name: str, existing: Iterable[str]) -> str | None:
    """Metric names replace '.' by '_', so two topics that differ only there would share theirs."""
    if "." not in name and "_" not in name:
        return None
    assert why_illegal(name) is None, "compared before it was checked"
    flat = name.replace(".", "_")
    for other in existing:
        if other != name and other.replace(".", "_") == flat:
            return f"Topic '{name}' collides with existing topic: {other}"
    return None
