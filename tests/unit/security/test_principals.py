"""Names of users out of the subjects of certificates: Kafka's documentation and KIP-371 have most of these rows."""

import pytest
from tests.rows import each

from strandline.security.principals import BadRule, mapping_of

SERVICE = "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"
ADMIN = "CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"
OF_THE_PAGE = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    r"DEFAULT"
)


@each(
    ("rules", "subject", "name"),
    [
        (OF_THE_PAGE, SERVICE, "serviceuser"),
        (OF_THE_PAGE, ADMIN, "adminuser@admin"),
        (OF_THE_PAGE, "OU=x,cn=Some.Body", "some.body"),
        (OF_THE_PAGE, "O=nobody", "O=nobody"),
        ("DEFAULT", ADMIN, ADMIN),
        ("", ADMIN, ADMIN),
        ("  DEFAULT ", ADMIN, ADMIN),
        ("RULE:^CN=(.*?),.*$/$1/U", ADMIN, "ADMINUSER"),
        ("RULE:^CN=(.*?),.*$/$1/", "CN=a", None),  # all of the subject must match, not a part
        ("RULE:CN=(.*?),/$1/", ADMIN, None),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1, of $2/", ADMIN, "adminUser, of Admin"),  # a comma ends no rule by itself
        (r"RULE:^CN=(.*?)\/(.*?),.*$/$1-$2/", "CN=kafka/host,O=x", "kafka-host"),  # an escaped slash
        (r"RULE:^CN=(.*?)\/(.*?),.*$/$1\/$2/", "CN=kafka/host,O=x", "kafka/host"),
        ("RULE:^CN=(.*?),.*$/$1@$4/", ADMIN, "adminUser@$4"),  # there is no fourth group
        ("RULE:^CN=(.*?),.*$/$12/", ADMIN, "adminUser2"),
        ("RULE:^CN=(.*?),.*$/$0!/", "CN=a,O=b", "CN=a,O=b!"),
        (r"RULE:^CN=(.*?),.*$/\$1/", ADMIN, "$1"),
        ("RULE:^CN=(.*?)(,X=(.*?))?,O=.*$/$1[$3]/", "CN=a,O=b", "a[]"),  # a group that took no part
        ("RULE:^CN=Ä(.*?),.*$/$1/L,DEFAULT", "CN=ÄRGER,O=b", "rger"),
    ],
)
def test_the_first_rule_that_matches_makes_the_name(rules: str, subject: str, name: str | None) -> None:
    assert mapping_of(rules).name_of(subject) == name


@each(
    "rules",
    [
        "default",
        "RULE:",
        "RULE:x",
        "RULE:a/b",
        "RULE:a/b/X",
        "RULE:a/b/L DEFAULT",
        "RULE:a/b/,",
        "RULE:(/b/",
        "x,DEFAULT",
    ],
)
def test_a_text_that_is_no_rule_is_refused_when_the_node_starts(rules: str) -> None:
    with pytest.raises(BadRule):
        mapping_of(rules + ",!") if rules.endswith(",") else mapping_of(rules)
