"""`sasl.jaas.config` of brokers and clients."""

import pytest
from tests.rows import each

from strandline.security.jaas import login_module

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@each(
    ("text", "options"),
    [
        (f'{MODULE} required username="a" password="p";', {"username": "a", "password": "p"}),
        (f"{MODULE} REQUIRED user_alice-1='s e;c' user_b.c@d=bare ;", {"user_alice-1": "s e;c", "user_b.c@d": "bare"}),
        (f'\n {MODULE}\n  required\n user_a = "q\\"\\\\;"', {"user_a": 'q"\\;'}),
        (f"{MODULE} required;", {}),
    ],
)
def test_a_login_module_has_a_name_and_options(text: str, options: dict[str, str]) -> None:
    module = login_module(text)
    assert (module.name, module.options) == ("PlainLoginModule", options)
    assert "bare" not in repr(module)


@each(
    ("text", "why"),
    [
        ("", "not of the form"),
        (MODULE, "not of the form"),
        (f'{MODULE} user_a="hush"', "not of the form"),
        (f'{MODULE} required user_a="hush" password', "not of the form"),
        (f'{MODULE} required user_a="hush', "not of the form"),
        (f'{MODULE} required user_a="hush"user_b="hush"', "not of the form"),
        (f'{MODULE} required user_a="hush" user_a="hush";', "twice"),
        (f'{MODULE} required user_a="hush"; {MODULE} required user_b="hush";', "more than one"),
    ],
)
def test_what_is_no_login_module_is_not_repeated(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        login_module(text)
    assert "hush" not in str(caught.value)
