"""`strandline acls`: which ACLs the options mean, what is refused before anything is sent, and what is printed."""

import json
from typing import Any

import pytest
from tests.rows import each

from strandline.cli.admin import acls as command
from strandline.cli.admin.acl_options import Entries, Resources
from strandline.client.admin.acls import sentence
from strandline.metadata.security.acls import Acl, AclFilter, PatternType, ResourceType

A = ["User:a"]


class Cluster:
    """Its ACLs, and how often somebody asked for them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.acls: list[Acl] = []
        self.asked: list[AclFilter] = []
        patch.setattr(command, "describe_acls", self.describe)
        patch.setattr(command, "create_acls", lambda bootstrap, acls: self.acls.extend(acls))
        patch.setattr(command, "delete_acls", self.delete)

    def describe(self, bootstrap: Any, wanted: AclFilter) -> list[Acl]:
        self.asked.append(wanted)
        return [acl for acl in self.acls if wanted.matches(acl)]

    def delete(self, bootstrap: Any, acls: list[Acl]) -> list[Acl]:
        self.acls = [acl for acl in self.acls if acl not in acls]
        return acls

    def add(self, resources: Resources, **entries: Any) -> list[str]:
        """The ACLs that this adds, in words."""
        before = len(self.acls)
        command.add(resources=resources, entries=Entries(**entries))
        return [sentence(acl) for acl in self.acls[before:]]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


ADDED = [
    (Resources(topic=["t"]), {"allow_principal": A}, ["allows User:a ALL on topic 't'"]),
    (
        Resources(topic=["t"], group=["*"]),
        {"deny_principal": ["User:a", "User:b"], "deny_host": ["::1"], "operation": ["Read", "DESCRIBE"]},
        [
            "denies User:a READ on topic 't' from ::1",
            "denies User:a DESCRIBE on topic 't' from ::1",
            "denies User:b READ on topic 't' from ::1",
            "denies User:b DESCRIBE on topic 't' from ::1",
            "denies User:a READ on each group from ::1",
            "denies User:a DESCRIBE on each group from ::1",
            "denies User:b READ on each group from ::1",
            "denies User:b DESCRIBE on each group from ::1",
        ],
    ),
    (
        Resources(cluster=True, resource_pattern_type="prefixed"),
        {"allow_principal": A, "deny_principal": ["User:b"], "operation": ["describe-configs"]},
        ["allows User:a DESCRIBE_CONFIGS on the cluster", "denies User:b DESCRIBE_CONFIGS on the cluster"],
    ),
    (
        Resources(topic=["t"], transactional_id=["x"], resource_pattern_type="PREFIXED"),
        {"producer": True, "idempotent": True, "allow_principal": A},
        [
            "allows User:a WRITE on each topic that begins with 't'",
            "allows User:a DESCRIBE on each topic that begins with 't'",
            "allows User:a CREATE on each topic that begins with 't'",
            "allows User:a WRITE on each transactional id that begins with 'x'",
            "allows User:a DESCRIBE on each transactional id that begins with 'x'",
            "allows User:a IDEMPOTENT_WRITE on the cluster",
        ],
    ),
    (
        Resources(topic=["t"], group=["g"]),
        {"producer": True, "consumer": True, "allow_principal": A},
        [
            "allows User:a WRITE on topic 't'",
            "allows User:a DESCRIBE on topic 't'",
            "allows User:a CREATE on topic 't'",
            "allows User:a READ on topic 't'",
            "allows User:a READ on group 'g'",
        ],
    ),
    (
        Resources(user_principal=["User:u"], delegation_token=["d"]),
        {"allow_principal": A},
        ["allows User:a ALL on delegation token 'd'", "allows User:a ALL on user 'User:u'"],
    ),
]


@each("resources, entries, expected", ADDED, ids=str)
def test_options_mean_acls(cluster: Cluster, resources: Resources, entries: Any, expected: list[str]) -> None:
    cluster.acls = []
    assert cluster.add(resources, **entries) == expected
    assert {acl.pattern_type for acl in cluster.acls if acl.resource_type == ResourceType.CLUSTER} <= {
        PatternType.LITERAL
    }
    assert cluster.add(resources, **entries) == [], "they exist"
    cluster.acls.append(other := Acl(ResourceType.TOPIC, "o", PatternType.LITERAL, "User:a", "*", 2, 3))  # type: ignore[arg-type]  # codes
    command.remove(resources=resources, entries=Entries(**entries), force=True)
    assert cluster.acls == [other], "remove takes back what add adds with the same options"


REFUSED = [
    (Resources(), {"allow_principal": A}, "no resource is named"),
    (Resources(topic=["t"]), {}, "no principal is named"),
    (Resources(topic=[" "]), {"allow_principal": A}, "the name of a resource is empty"),
    (Resources(topic=["t"]), {"allow_principal": ["alice"]}, "for example User:alice"),
    (Resources(topic=["t"], resource_pattern_type="any"), {"allow_principal": A}, "no pattern of type any"),
    (Resources(topic=["t"], resource_pattern_type="regex"), {"allow_principal": A}, "any, match, literal, prefixed"),
    (Resources(topic=["t"]), {"allow_principal": A, "operation": ["Any"]}, "'Any' is not an operation"),
    (Resources(topic=["t"]), {"allow_principal": A, "operation": ["All", "ClusterAction"]}, "All, Read, Write"),
    (Resources(group=["g"]), {"allow_principal": A, "operation": ["Write"]}, "a group has no operation Write"),
    (Resources(topic=["t"]), {"deny_principal": A, "allow_host": ["h"]}, "--allow-host needs --allow-principal"),
    (Resources(topic=["t"]), {"allow_principal": A, "deny_host": ["h"]}, "--deny-host needs --deny-principal"),
    (Resources(topic=["t"]), {"allow_principal": A, "idempotent": True}, "--idempotent needs --producer"),
    (Resources(topic=["t"]), {"producer": True}, "need --allow-principal"),
    (Resources(group=["g"]), {"allow_principal": A, "producer": True}, "--producer needs --topic"),
    (Resources(topic=["t"]), {"allow_principal": A, "consumer": True}, "--consumer needs --topic and --group"),
    (
        Resources(topic=["t"], group=["g"], transactional_id=["x"]),
        {"allow_principal": A, "consumer": True},
        "the role has nothing to do with a transactional id",
    ),
    (Resources(topic=["t"]), {"allow_principal": A, "producer": True, "operation": ["Read"]}, "leave out --operation"),
    (Resources(topic=["t"]), {"allow_principal": A, "producer": True, "deny_principal": A}, "--deny"),
]


@each("resources, entries, words", REFUSED, ids=str)
def test_what_makes_no_sense_is_refused_before_a_cluster_is_asked(
    cluster: Cluster, capsys: Any, resources: Resources, entries: Any, words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        cluster.add(resources, **entries)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
    assert cluster.asked == []


def test_a_removal_without_principals_takes_all_acls_of_a_resource(cluster: Cluster, capsys: Any) -> None:
    names = Resources(topic=["t", "tt"])
    cluster.add(names, allow_principal=A, deny_principal=["User:b"], operation=["Read", "Write"])
    cluster.add(Resources(topic=["t"], resource_pattern_type="prefixed"), allow_principal=A)
    assert len(cluster.acls) == 9
    command.remove(resources=Resources(topic=["t"]), entries=Entries(operation=["Write"]), force=True)
    assert len(cluster.acls) == 7
    command.remove(resources=Resources(topic=["t"]), force=True)
    assert len(cluster.acls) == 5
    command.remove(resources=Resources(topic=["tt"], resource_pattern_type="match"), force=True)
    assert cluster.acls == []
    capsys.readouterr()
    command.remove(resources=names, force=True)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "no ACL matches: nothing is removed\n")


def test_a_removal_is_confirmed(cluster: Cluster, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person sees what would be removed; a script needs --force."""
    cluster.add(Resources(topic=["t"]), allow_principal=["User:a", "User:b"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(SystemExit) as ended:
        command.remove(resources=Resources(topic=["t"]))
    assert ended.value.code == 2
    assert "this would remove 2 ACLs" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer in ("n", ""):
        monkeypatch.setattr("builtins.input", lambda asked, answer=answer: answer)
        with pytest.raises(SystemExit):
            command.remove(resources=Resources(topic=["t"]))
        assert "the ACL that allows User:b ALL on topic 't'" in capsys.readouterr().out
        assert len(cluster.acls) == 2
    monkeypatch.setattr("builtins.input", lambda asked: "Y")
    command.remove(resources=Resources(topic=["t"]))
    assert cluster.acls == []
    assert capsys.readouterr().out.endswith("removed: allows User:b ALL on topic 't'\n")


def test_a_list_is_of_what_is_named(cluster: Cluster, capsys: Any) -> None:
    cluster.add(Resources(topic=["t"], group=["g"]), allow_principal=["User:a", "User:b"], operation=["Read"])
    capsys.readouterr()

    def listed(resources: Resources, *principals: str) -> list[tuple[str, str]]:
        command.list_acls(resources=resources, principal=list(principals), json_output=True)
        return [(row["resource_type"], row["principal"]) for row in json.loads(capsys.readouterr().out)]

    assert len(listed(Resources())) == 4
    assert listed(Resources(), "User:b") == [("TOPIC", "User:b"), ("GROUP", "User:b")]
    assert listed(Resources(group=["g"]), "User:b", "User:a") == [("GROUP", "User:b"), ("GROUP", "User:a")]
    assert listed(Resources(group=["gg"])) == []
    command.list_acls(resources=Resources(topic=["t"]), principal=["User:a"])
    assert capsys.readouterr().out == (
        "ResourceType: TOPIC\tResourceName: t\tPatternType: LITERAL\tPrincipal: User:a\tHost: *\tOperation: READ"
        "\tPermissionType: ALLOW\n"
    )


def test_an_addition_says_what_was_there(cluster: Cluster, capsys: Any) -> None:
    cluster.add(Resources(topic=["t"]), allow_principal=A)
    capsys.readouterr()
    cluster.add(Resources(topic=["t"]), allow_principal=["User:a", "User:b"])
    assert capsys.readouterr().out.splitlines() == [
        "exists: allows User:a ALL on topic 't'",
        "added: allows User:b ALL on topic 't'",
    ]
    entries = Entries(allow_principal=A)
    command.add(resources=Resources(topic=["t"]), entries=entries, json_output=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["operation"], row["permission"], row["outcome"]) == ("ALL", "ALLOW", "exists")
