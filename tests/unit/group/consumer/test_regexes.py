"""Regular expressions of subscriptions: RE2's dialect, whole names, and limits."""

import subprocess
import sys
from time import process_time

import pytest
import re2
from tests.rows import each

from strandline.base.ids import INTERNAL_TOPICS
from strandline.group.consumer.regexes import InvalidRegex, resolve

NAMES = ("orders", "orders-eu", "payments", "pay", "a.b", "axb", *INTERNAL_TOPICS, "__mine")


@each(
    ("pattern", "found"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        ("pay|payments", {"pay", "payments"}),
        ("^pay$", {"pay"}),
        ("(?i)ORDERS", {"orders"}),
        (r"a\.b", {"a.b"}),
        (r"\pL+", {"orders", "payments", "pay", "axb"}),
        ("__.*", {"__mine"}),
        ("__consumer_offsets", set()),
        ("", set()),
        ("nothing", set()),
    ],
)
def test_an_expression_names_the_topics_whose_whole_name_it_matches(pattern: str, found: set[str]) -> None:
    assert resolve(pattern, NAMES) == found


@each(
    ("pattern", "reason"),
    [
        ("(", "missing ): ("),
        ("(?=a)", "invalid perl operator: (?="),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("a**", "bad repetition operator: **"),
        ("a{1001}", "invalid repetition size: {1001}"),
        ("a" * 4097, "it is longer than 4096 bytes"),
        ("ä" * 2049, "it is longer than 4096 bytes"),
        ("(.?){300}", "it is too large"),
    ],
)
def test_others_are_rejected_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidRegex, match=f"^{re2.escape(reason)}"):
        resolve(pattern, NAMES)


def test_a_catastrophe_of_backtracking_costs_nothing() -> None:
    start = process_time()
    assert resolve("(a*)*b", ["a" * 200] * 50) == frozenset()
    assert process_time() - start < 1


def test_the_library_keeps_no_expression_and_is_loaded_when_a_group_needs_it() -> None:
    resolve("orders", NAMES)
    assert re2._Regexp._make.cache_info().currsize == 0
    code = "import sys, strandline.group.consumer.regexes; print('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
