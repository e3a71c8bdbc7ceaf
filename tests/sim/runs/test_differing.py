"""Where mutants differ from the source, as one run of a seed tells it."""

import ast

import pytest
from tests.mutants.differing import Differing, Instrumenting, Spot, spot_of
from tests.mutants.rows import MUTANTS
from tests.mutants.simulating import look

from strandline.sim.runs.run import run_seed

pytestmark = pytest.mark.long

SEED = 49  # a quick one


def spot(old: str, new: str) -> Spot:
    return spot_of(ast.parse(old), ast.parse(new))


def differing(old: str, new: str, call: str) -> bool:
    """Does the mutant differ when `call` is made of the source?"""
    seen, tree = Differing(), ast.parse(old)
    found = spot_of(tree, ast.parse(new))
    names = {"_differs": seen.differs, "_reached": seen.reached}
    exec(compile(ast.fix_missing_locations(Instrumenting([("it", found)]).visit(tree)), "it", "exec"), names)
    eval(call, names)
    return bool(seen.names)


LESS, AT_MOST = "def f(a, b):\n    return a < b", "def f(a, b):\n    return a <= b"
GUARD = "def f(a):\n    if a > 3:\n        return 0\n    return a"
NO_GUARD = "def f(a):\n    return a"


@pytest.mark.parametrize(
    ("old", "new", "call", "expected"),
    [
        (LESS, AT_MOST, "f(1, 2)", False),
        (LESS, AT_MOST, "f(2, 2)", True),
        (GUARD, NO_GUARD, "f(1)", True),  # statements are gone: to be there is enough
        (GUARD, GUARD.replace("return 0", "return 1"), "f(1)", False),
        (GUARD, GUARD.replace("return 0", "return 1"), "f(4)", True),
        (GUARD, GUARD.replace("a > 3", "a.b > 3"), "f(1)", True),  # it would have failed
    ],
)
def test_a_mutant_differs_where_its_expression_has_another_value(old: str, new: str, call: str, expected: bool) -> None:
    assert differing(old, new, call) is expected


def test_what_is_outside_of_functions_differs_always() -> None:
    found = spot("A = 5", "A = 4")
    assert found.old is None
    assert found.place is None


def test_what_must_not_happen_twice_is_not_evaluated_twice() -> None:
    found = spot("def f(a):\n    return a.pop() < 3", "def f(a):\n    return a.pop() <= 3")
    assert found.old is None
    assert found.place is not None


def test_a_run_that_is_looked_at_does_what_a_plain_one_does() -> None:
    (looked,) = look([SEED])
    plain = run_seed(SEED)
    assert (looked.events, looked.digest, looked.check) == (plain.events, plain.digest, "")
    assert 50 < len(looked.names) < len(MUTANTS)
