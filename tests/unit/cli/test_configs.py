"""`strandline configs` without a cluster: how its options are read, and how a setting is shown."""

import pytest

from strandline.cli.admin.configs import entity, line_of, parse_added

ADDED = [
    ("", {}),
    ("a=b", {"a": "b"}),
    ("a=b,c=d=e", {"a": "b", "c": "d=e"}),
    ("a=[b,c],d=e", {"a": "b,c", "d": "e"}),
    ("d=e, a=[0:1,1:2]", {"d": "e", "a": "0:1,1:2"}),
    ("a=", {"a": ""}),
    ("a=[]", {"a": ""}),
]


@pytest.mark.parametrize(("text", "found"), ADDED)
def test_what_is_to_be_set(text: str, found: dict[str, str]) -> None:
    assert parse_added(text) == found


@pytest.mark.parametrize("text", ["a", "=b", "a=b,c", "a=b,,c=d"])
def test_what_is_no_key_and_value_ends_the_command(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_added(text)
    assert ended.value.code == 2
    assert "--add-config needs KEY=VALUE" in capsys.readouterr().err


def test_the_default_of_all_brokers_has_no_name_and_topics_have_no_default() -> None:
    assert entity(["brokers"], [""]) == ("brokers", "")
    assert entity(["brokers"], ["1"]) == ("brokers", "1")
    assert entity(["topics"], []) == ("topics", None)
    for types, names in ((["topics"], [""]), (["brokers"], ["1", ""]), (["brokers", "topics"], [])):
        with pytest.raises(SystemExit):
            entity(types, names)


def test_a_setting_is_shown_with_its_sources() -> None:
    row = {
        "name": "retention.ms",
        "value": "5",
        "sensitive": False,
        "synonyms": [
            {"name": "retention.ms", "value": "5", "source": "DYNAMIC_TOPIC_CONFIG"},
            {"name": "log.retention.hours", "value": "168", "source": "DEFAULT_CONFIG"},
        ],
        "documentation": "How old.",
    }
    sources = "DYNAMIC_TOPIC_CONFIG:retention.ms=5, DEFAULT_CONFIG:log.retention.hours=168"
    assert line_of(row) == f"  retention.ms=5 sensitive=false synonyms={{{sources}}}"
    assert line_of(row, docs=True).endswith("}\n      How old.")
    assert line_of({**row, "value": None}).startswith("  retention.ms=null ")
