"""Which quota a client has, and with whom it shares it (KIP-546 has the levels, KIP-55 their order).

For each kind of quota the most specific entity that has it counts:

    user and client id, user and any client id, user,
    any user and client id, any user and any client id, any user,
    client id, any client id

What was used is counted for the user, the client id or both, as the level that counts has them: each user has a quota
of its own by the default of users.
"""

from collections.abc import Mapping

from strandline.base.value import Value
from strandline.metadata.security.quotas import CLIENT_ID, USER, QuotaEntity

SHOWN_MAX = 256  # letters of a name by which use is counted: clients choose their ids, of up to 32 KiB
ABSENT = ""  # no name is empty

Names = tuple[str | None, str | None]  # of the user and the client id: None is the default, ABSENT is not in the entity


class Quota(Value, frozen=True):
    limit: float  # a second; of request_percentage: hundredths of a second, a second
    user: str  # who shares it: ABSENT if that does not matter
    client_id: str

    def __post_init__(self) -> None:
        assert self.limit > 0, "no quota lets nothing through"


class Limits:
    """The quotas of users and client ids, by kind."""

    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self.by_kind: dict[str, dict[Names, float]] = {}
        for entity, values in quotas.items():
            names = dict(entity)
            if USER not in names and CLIENT_ID not in names:
                continue
            at = (names.get(USER, ABSENT), names.get(CLIENT_ID, ABSENT))
            for kind, value in values.items():
                self.by_kind.setdefault(kind, {})[at] = value

    def __bool__(self) -> bool:
        return bool(self.by_kind)

    def quota(self, kind: str, user: str, client_id: str) -> Quota | None:
        """None: it is not limited. A client may have no id, which is "": then only levels without one hold for it."""
        limits = self.by_kind.get(kind)
        if limits is None:
            return None
        for names, is_of_user, is_of_client in levels(user, client_id):
            limit = limits.get(names)
            if limit is not None:
                return Quota(
                    limit, user[:SHOWN_MAX] if is_of_user else ABSENT, client_id[:SHOWN_MAX] if is_of_client else ABSENT
                )
        return None


def levels(user: str, client_id: str) -> tuple[tuple[Names, bool, bool], ...]:
    """From the most specific on: (names, is the use counted by user, and by client id)."""
    if not client_id:
        return (((user, ABSENT), True, False), ((None, ABSENT), True, False))
    return (
        ((user, client_id), True, True),
        ((user, None), True, True),
        ((user, ABSENT), True, False),
        ((None, client_id), True, True),
        ((None, None), True, True),
        ((None, ABSENT), True, False),
        ((ABSENT, client_id), False, True),
        ((ABSENT, None), False, True),
    )
