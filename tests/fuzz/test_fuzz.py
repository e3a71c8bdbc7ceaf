"""A short run of the fuzzer: the inputs that are kept, some hundred made from them, and a siege of whole nodes.

More: `python -m tests.fuzz --minutes 10`.
"""

from random import Random

import pytest
from tests.fuzz.corpus import changed, stored
from tests.fuzz.node import siege
from tests.fuzz.targets import TARGETS

CHANGED = 300


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_breaks_a_promise(target: str) -> None:
    inputs = [data for _, data in stored(target)]
    assert inputs
    rng = Random(1)
    for data in [*inputs, *(changed(inputs, rng) for _ in range(CHANGED))]:
        try:
            TARGETS[target](data)
        except Exception as error:
            error.add_note(f"in the input {data.hex()}")
            raise


def test_whole_nodes_bear_drawn_requests() -> None:
    siege(seed=1, steps=120)
