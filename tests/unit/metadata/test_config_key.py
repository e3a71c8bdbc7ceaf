"""Texts of configuration values."""

import pytest

from strandline.metadata.configs.config_key import LONG, read_value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0" * 5_000, 0),
        ("-" + "0" * 5_000 + "7", -7),
        ("+7", 7),
        ("9" * 5_000, None),
        ("9223372036854775807", (1 << 63) - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(1 << 63)),
        ("-", None),
        ("", None),
    ],
)
def test_a_number_may_be_of_any_length_and_python_reads_only_short_ones(text: str, number: int | None) -> None:
    assert read_value(LONG, text) == number
