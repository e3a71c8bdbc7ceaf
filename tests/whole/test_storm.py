"""Many histories, each from one seed: what was acknowledged is never taken back, and the cluster heals by itself."""

import pytest
from tests.whole.storm import Storm


@pytest.mark.parametrize("seed", range(1000, 1014))
def test_a_storm_takes_nothing_back(seed: int) -> None:
    Storm(seed).run()
