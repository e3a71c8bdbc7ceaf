"""ACLs, arranged so that those about one resource and one principal are found without looking at the others.

A resource is named by literal ACLs of its name, by literal ACLs of the name "*", and by prefixed ACLs, of which only
as many names are looked up as prefixes have different lengths.

Invariants (executed by `check`):
  - every ACL is in one cell, that of its pattern and its principal, and in its principal's list
  - a cell without an ACL, and a length that no prefix has, is not there
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address, ip_address

from msgspec.structs import replace

from strandline.base.ids import Uuid
from strandline.metadata.security.acls import WILDCARD, Acl, PatternType

# What one pattern says: by principal, the ACLs by their ids.
Cells = dict[str, dict[Uuid, Acl]]
Pattern = tuple[int, int, str]  # resource type, pattern type, name


class AclIndex:
    def __init__(self) -> None:
        self.acls: dict[Uuid, Acl] = {}
        self.patterns: dict[Pattern, Cells] = {}
        self.lengths: dict[int, dict[int, int]] = {}  # by resource type: how many patterns have a prefix of a length
        self.by_principal: dict[tuple[int, str], dict[Uuid, Acl]] = {}  # by resource type and principal

    def follow(self, acls: Mapping[Uuid, Acl]) -> None:
        """Have the same ACLs. An id names one ACL for ever."""
        for acl_id in self.acls.keys() - acls.keys():
            self.remove(acl_id)
        for acl_id in acls.keys() - self.acls.keys():
            self.add(acl_id, acls[acl_id])
        assert len(self.acls) == len(acls)

    def add(self, acl_id: Uuid, acl: Acl) -> None:
        assert acl_id not in self.acls
        self.acls[acl_id] = acl
        acl = replace(acl, host=canonical(acl.host))
        pattern = pattern_of(acl)
        cells = self.patterns.get(pattern)
        if cells is None:
            cells = self.patterns[pattern] = {}
            if acl.pattern_type == PatternType.PREFIXED:
                lengths = self.lengths.setdefault(acl.resource_type, {})
                lengths[len(acl.resource_name)] = lengths.get(len(acl.resource_name), 0) + 1
        cells.setdefault(acl.principal, {})[acl_id] = acl
        self.by_principal.setdefault((acl.resource_type, acl.principal), {})[acl_id] = acl

    def remove(self, acl_id: Uuid) -> None:
        acl = self.acls.pop(acl_id)
        of_principal = self.by_principal[acl.resource_type, acl.principal]
        del of_principal[acl_id]
        if not of_principal:
            del self.by_principal[acl.resource_type, acl.principal]
        pattern = pattern_of(acl)
        cells = self.patterns[pattern]
        del cells[acl.principal][acl_id]
        if not cells[acl.principal]:
            del cells[acl.principal]
        if cells:
            return
        del self.patterns[pattern]
        if acl.pattern_type == PatternType.PREFIXED:
            lengths = self.lengths[acl.resource_type]
            lengths[len(acl.resource_name)] -= 1
            if not lengths[len(acl.resource_name)]:
                del lengths[len(acl.resource_name)]

    def about(self, resource_type: int, name: str) -> Iterator[Cells]:
        """What each pattern says that the resource matches."""
        for literal in (name,) if name == WILDCARD else (name, WILDCARD):
            found = self.patterns.get((resource_type, PatternType.LITERAL, literal))
            if found is not None:
                yield found
        for length in self.lengths.get(resource_type, ()):
            if length <= len(name):
                found = self.patterns.get((resource_type, PatternType.PREFIXED, name[:length]))
                if found is not None:
                    yield found

    def check(self) -> None:
        cells = [cell for cells in self.patterns.values() for cell in cells.values()]
        assert all(cells) and all(self.patterns.values()) and all(self.by_principal.values())
        assert sorted(acl_id for cell in cells for acl_id in cell) == sorted(self.acls)
        assert sorted(acl_id for acls in self.by_principal.values() for acl_id in acls) == sorted(self.acls)
        for resource_type, lengths in self.lengths.items():
            of_type = [p for p in self.patterns if p[:2] == (resource_type, PatternType.PREFIXED)]
            assert lengths == Counter(len(name) for _, _, name in of_type)


def pattern_of(acl: Acl) -> Pattern:
    return acl.resource_type, acl.pattern_type, acl.resource_name


def canonical(host: str) -> str:
    """One text for each address: an IPv6 address has many, and Java writes another one than the sockets here. IPv4 is
    IPv4 also where a socket for both has it as ::ffff:10.0.0.1: an ACL that denies 10.0.0.1 denies it there, too."""
    if ":" not in host:
        return host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str(address.ipv4_mapped or address) if isinstance(address, IPv6Address) else str(address)
