"""What Spark makes of our errors, and what people are told of it."""

from collections.abc import Iterator

import pytest
from tests.rows import each

import strandline_spark.replica.source
import strandline_spark.sink.writer
import strandline_spark.topic.source  # noqa: F401  (these are what runs in Spark's processes)
from strandline_spark.errors import StrandlineError, sentence_of

pytestmark = pytest.mark.filterwarnings("default")  # PySpark's own

OF_SPARK = """\
An error occurred while calling o65.save.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
Traceback (most recent call last):
  File "writer.py", line 65, in write
{name}: row 7 is bad
  leave it out

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:600)
"""


def kinds(of: type[StrandlineError] = StrandlineError) -> Iterator[type[StrandlineError]]:
    yield of
    for kind in of.__subclasses__():
        yield from kinds(kind)


@each("kind", [each for each in kinds() if each.__module__.startswith("strandline.")])
def test_each_error_is_found_in_what_spark_makes_of_it(kind: type[StrandlineError]) -> None:
    sentence = sentence_of(Exception(OF_SPARK.format(name=f"{kind.__module__}.{kind.__qualname__}")))
    assert (sentence.problem, sentence.advice) == ("row 7 is bad", "leave it out")
