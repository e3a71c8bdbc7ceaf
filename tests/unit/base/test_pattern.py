"""Patterns mean what they mean to Python, and end soon."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each

from strandline.base.pattern import STEPS_MAX, Invalid, Pattern

PARTS = (
    *("a", "b", ".", "[ab]", "[^a]", "(a|b)", "(?:ab)", "a*", "b+", "(ab)?", "a{2}", "(a|b){1,3}", "a{", "^", "$"),
    *("(a*)*", "[a-c]", r"\.", r"\w", r"\D", r"\s", "|", "(|a)", "b{1,}", "a*?", "()", "[]a]", "[a-]", r"[\d-]"),
)


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=6), st.lists(st.text("ab.-]1 ", max_size=6), max_size=4))
def test_a_pattern_matches_what_python_says(parts: list[str], texts: list[str]) -> None:
    text = "".join(parts)
    try:
        expected = re.compile(text, re.ASCII)
    except re.error:
        with pytest.raises(Invalid):
            Pattern(text)
        return
    pattern = Pattern(text)
    for one in texts:
        assert pattern.matches(one) is (expected.fullmatch(one) is not None), (text, one)


@each(
    "text",
    [
        *("(", ")", "a)", "[", "[z-a]", "*", "a**", "a{3,2}", "a{1001}", "(?=a)", "(?i)a", r"(a)\1", r"\b", "\\"),
        *("((((a{9}){9}){9}){9}){9}", "(" * 51 + ")" * 51),
    ],
)
def test_what_is_no_pattern_or_too_large_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        Pattern(text)


def test_nothing_repeated_is_nothing() -> None:
    assert Pattern("((((){1000}){1000}){1000}){1000}").matches("")


def test_a_pattern_that_takes_too_many_steps_is_given_up() -> None:
    began = time.process_time()
    pattern = Pattern("(a|b)*a" + "(a|b)" * 180)
    with pytest.raises(Invalid):
        for at in range(10_000):
            pattern.matches(bin(at * 7919 + (1 << 200))[2:].replace("0", "a").replace("1", "b"))
    assert pattern.steps < 2 * STEPS_MAX
    assert time.process_time() - began < 5
