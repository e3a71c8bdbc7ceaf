"""Mutants of ACLs: in the metadata, at the controller and at the command line."""

from tests.mutants.mutant import Breaks, Mutant, table

RESOURCES = ("unit/metadata/test_acls.py::test_a_filter_finds_resources_by_type_name_and_pattern",)
ENTRIES = ("unit/metadata/test_acls.py::test_a_filter_finds_entries_by_each_of_their_fields",)
INVALID = ("unit/metadata/test_acls.py::test_what_no_acl_can_be_is_refused_with_kafkas_message",)
UNFIT = (
    "unit/metadata/test_fitting.py::"
    "test_what_does_not_fit_is_reported_with_the_reason_and_what_is_like_it_and_fits_is_applied"
)
LARGE = ("unit/controller/test_acls.py::test_a_request_that_is_too_large_is_refused_as_a_whole",)
ENCODABLE = ("unit/controller/test_encodable.py::test_answers_and_records_can_be_encoded",)
FILE, CONTROLLER, COMMITTED = "metadata/security/acls.py", "controller/security/acls.py", "broker/committed.py"
LATER = ("unit/broker/test_committed.py::test_another_image_has_a_later_version_of_acls_whatever_it_holds",)
OPTIONS = ("unit/cli/test_acls.py::test_options_mean_acls",)

ACLS = table(
    Mutant(
        "ACLs are not in a snapshot",
        "metadata/image.py",
        "            yield acl_record(acl_id, acl)\n",
        "            pass\n",
        Breaks.AGREEMENT,
        ("unit/metadata/test_image.py::test_a_snapshot_says_everything",),
    ),
    Mutant(
        "a copy of an image shares its ACLs",
        "metadata/state.py",
        "self.acls = dict(other.acls)",
        "self.acls = other.acls",
        Breaks.AGREEMENT,
        ("unit/metadata/test_image.py::test_an_acl_is_there_until_it_is_removed_and_each_change_has_a_version",),
    ),
    Mutant(
        "a removed ACL leaves the version as it was",
        "metadata/state.py",
        "        del self.acl_ids[self.acls.pop(acl_id)]\n        self.acls_version += 1\n",
        "        del self.acl_ids[self.acls.pop(acl_id)]\n",
        Breaks.ANSWERS,
        ("unit/metadata/test_image.py::test_an_acl_is_there_until_it_is_removed_and_each_change_has_a_version",),
    ),
    Mutant(
        "a loaded snapshot may have the version of the ACLs before it",
        COMMITTED,
        "        image.take_place_of(self.image)\n",
        "        image.delta.reloaded = True\n",
        Breaks.ANSWERS,
        LATER,
    ),
    Mutant(
        "what the start replayed may have the version of other ACLs",
        COMMITTED,
        "            ahead.image.take_place_of(self.image)\n",
        "            ahead.image.delta.reloaded = True\n",
        Breaks.ANSWERS,
        LATER,
    ),
    Mutant(
        "an image that was taken back may have the version of other ACLs",
        COMMITTED,
        "            self.image.take_place_of(old)\n",
        "            self.image.delta.reloaded = True\n",
        Breaks.ANSWERS,
        LATER,
    ),
    Mutant(
        "an ACL that exists fits the log under another id",
        "metadata/fitting.py",
        'return "there is such an ACL" if new in image.acl_ids else why_meaningless(new)',
        "return why_meaningless(new)",
        Breaks.AGREEMENT,
        (UNFIT,),
    ),
    Mutant(
        "an ACL whose operation has no meaning fits the log",
        "metadata/fitting.py",
        'return "there is such an ACL" if new in image.acl_ids else why_meaningless(new)',
        'return "there is such an ACL" if new in image.acl_ids else None',
        Breaks.AGREEMENT,
        (UNFIT,),
    ),
    Mutant(
        "MATCH does not find a wildcard",
        FILE,
        "    return acl.resource_name in (name, WILDCARD)\n",
        "    return acl.resource_name == name\n",
        Breaks.ANSWERS,
        RESOURCES,
    ),
    Mutant(
        "MATCH finds what begins with the name, and not what the name begins with",
        FILE,
        "        return name.startswith(acl.resource_name)\n",
        "        return acl.resource_name.startswith(name)\n",
        Breaks.ANSWERS,
        RESOURCES,
    ),
    Mutant(
        "a filter does not look at hosts",
        FILE,
        "            and self.host in (None, acl.host)\n",
        "",
        Breaks.ANSWERS,
        ENTRIES,
    ),
    Mutant(
        "a filter for ALL finds every operation",
        FILE,
        "            and self.operation in (AclOperation.ANY, acl.operation)\n",
        "            and self.operation in (AclOperation.ANY, AclOperation.ALL, acl.operation)\n",
        Breaks.ANSWERS,
        ENTRIES,
    ),
    Mutant(
        "a cluster of any name has ACLs",
        FILE,
        "    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:\n",
        "    if acl.resource_type == ResourceType.CLUSTER and not acl.resource_name:\n",
        Breaks.ANSWERS,
        INVALID,
    ),
    Mutant(
        "a message about a principal may be as long as the principal",
        FILE,
        "        shown = acl.principal[:SHOWN]\n",
        "        shown = acl.principal\n",
        Breaks.ANSWERS,
        (*INVALID, *ENCODABLE),
    ),
    Mutant(
        "texts of an ACL may be longer than an answer has room for",
        FILE,
        "    if any(len(text.encode()) > TEXT_MAX for",
        "    if any(len(text) > TEXT_MAX for",
        Breaks.ANSWERS,
        INVALID,
    ),
    Mutant(
        "an ACL that exists is created again under another id",
        CONTROLLER,
        "acl not in basis.image.acl_ids and acl not in ids:",
        "acl not in ids:",
        Breaks.AGREEMENT,
        ("unit/controller/test_acls.py::test_an_acl_that_exists_is_created_again_without_a_record",),
    ),
    Mutant(
        "the bytes of new ACLs are not bounded",
        CONTROLLER,
        "    return TOO_LARGE if size > BYTES_MAX else None\n",
        "    return None\n",
        Breaks.DURABILITY,
        LARGE,
    ),
    Mutant(
        "filters that look at all ACLs are not bounded",
        CONTROLLER,
        " * acls > LOOKS_MAX else None\n",
        " > LOOKS_MAX else None\n",
        Breaks.ANSWERS,
        LARGE,
    ),
    Mutant(
        "a filter that is refused finds nothing instead",
        CONTROLLER,
        "        why = why_invalid_filter(wanted)\n",
        "        why = None\n",
        Breaks.ANSWERS,
        ("unit/controller/test_acls.py::test_each_filter_has_what_it_found_and_an_acl_is_deleted_once",),
    ),
    Mutant(
        "ACLs are created where no authorizer would ask for them",
        CONTROLLER,
        "NO_AUTHORIZER if not basis.static.get(AUTHORIZER_KEY) else why_too_large(",
        "why_too_large(",
        Breaks.ANSWERS,
        ("unit/controller/test_acls.py::test_without_an_authorizer_nothing_is_created_or_deleted",),
    ),
    Mutant(
        "super users are split at commas",
        FILE,
        'for part in text.split(";") if',
        'for part in text.replace(",", ";").split(";") if',
        Breaks.ANSWERS,
        ("unit/broker/test_config.py::test_an_authorizer_has_its_super_users",),
    ),
    Mutant(
        "ACLs of the cluster are prefixed if other resources are",
        "cli/admin/acl_options.py",
        "pattern = PatternType.LITERAL if kind == ResourceType.CLUSTER else self.pattern",
        "pattern = self.pattern",
        Breaks.ANSWERS,
        OPTIONS,
    ),
    Mutant(
        "a consumer that produces too has the operations of one of both",
        "cli/admin/acl_options.py",
        "tuple(dict.fromkeys(found.get(resource, ()) + role[resource[0]]))",
        "role[resource[0]]",
        Breaks.ANSWERS,
        OPTIONS,
    ),
    Mutant(
        "a removal without principals ignores operations",
        "cli/admin/acls.py",
        "[operation_of(one) for one in entries.operation or ()] or [AclOperation.ANY]",
        "[AclOperation.ANY]",
        Breaks.ANSWERS,
        ("unit/cli/test_acls.py::test_a_removal_without_principals_takes_all_acls_of_a_resource",),
    ),
)
