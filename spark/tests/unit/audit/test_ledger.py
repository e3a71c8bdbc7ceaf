"""The loss ledger of a cluster that does not answer, and of one whose address makes no sense."""

import pytest

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.audit.ledger import losses_of


@pytest.mark.parametrize(
    ("bootstrap", "why"),
    [("127.0.0.1:1", "no cluster answers at 127.0.0.1:1"), ("h:port", "'h:port' is not host:port")],
)
def test_a_cluster_that_is_not_reached_is_an_error_that_says_why(bootstrap: str, why: str) -> None:
    with pytest.raises(StrandlineError) as caught:
        losses_of(bootstrap)
    assert caught.value.problem.startswith("no broker returned its loss ledger: ")
    assert why in caught.value.problem
