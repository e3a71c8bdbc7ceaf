"""What becomes of a marked guard, word by word, and what is refused."""

from pathlib import Path

import pytest
from tests.mutants.mutant import mutated
from tests.planted.changes import ALWAYS, NEVER, SKIP, Gives, How, Instead, Swap, Without, changed
from tests.planted.guards import NotPlanted, marks, module_of, without_marks
from tests.planted.hook import differing_lines

CASES: dict[str, tuple[How, str, str]] = {
    "a test is never true": (NEVER, "if a < b:  # guard: g\n    c()", "if False:  # guard: g\n    c()"),
    "a test is always true": (ALWAYS, "while a:  # guard: g\n    c()", "while True:  # guard: g\n    c()"),
    "an elif": (
        NEVER,
        "if a:\n    b()\nelif c:  # guard: g\n    d()",
        "if a:\n    b()\nelif False:  # guard: g\n    d()",
    ),
    "a case": (
        NEVER,
        "match a:\n    case 1 if b:  # guard: g\n        c()",
        "match a:\n    case 1 if False:  # guard: g\n        c()",
    ),
    "a value": (NEVER, "a = b in c  # guard: g", "a = False  # guard: g"),
    "a conditional expression": (ALWAYS, "a = b if c else d  # guard: g", "a = b if True else d  # guard: g"),
    "the test of a comprehension": (
        ALWAYS,
        "a = tuple(b for b in c if d)  # guard: g",
        "a = tuple(b for b in c if True)  # guard: g",
    ),
    "a mark above": (NEVER, "# guard: g\na = b  # why", "# guard: g\na = False  # why"),
    "a mark behind another comment": (NEVER, "a = b  # why  # guard: g", "a = False  # why  # guard: g"),
    "a term on a line of its own": (
        NEVER,
        "a = (\n    b\n    or c.d != e  # guard: g\n    or f\n)",
        "a = (\n    b\n    or False  # guard: g\n    or f\n)",
    ),
    "an argument on a line of its own": (
        Gives("1"),
        "a(\n    b=2,\n    c=3,  # guard: g\n)",
        "a(\n    b=2,\n    c=(1),  # guard: g\n)",
    ),
    "an argument left out": (SKIP, "a(\n    b=2,\n    c=3,  # guard: g\n)", "a(\n    b=2,\n      # guard: g\n)"),
    "a statement that does nothing": (
        SKIP,
        "if a:\n    # guard: g\n    b(\n        c\n    )\n    d()",
        "if a:\n    # guard: g\n    pass\n    d()",
    ),
    "a test with its branches": (SKIP, "if a:  # guard: g\n    b()\nelse:\n    c()\nd()", "pass\nd()"),
    "a term of `and`": (Without("b"), "return a and (b.c or d)  # guard: g", "return a and (False or d)  # guard: g"),
    "a term of `or`": (Without("c"), "a = b and d or c(e)  # guard: g", "a = b and d or False  # guard: g"),
    "words": (Swap("a.b<", "c <="), "# guard: g\nif a.b  <  d:\n    e()", "# guard: g\nif c <=  d:\n    e()"),
    "other words": (Swap("a . b", "c"), "if a.b < ab:  # guard: g\n    a.b()", "if c < ab:  # guard: g\n    a.b()"),
    "what is gone through": (Gives("c"), "for a in b:  # guard: g\n    d()", "for a in (c):  # guard: g\n    d()"),
    "what was before and more": (Gives("... or c"), "a = 'ü', b  # guard: g", "a = (('ü', b) or c)  # guard: g"),
    "statements before": (
        Instead("a()\n..."),
        "if b:\n    c()  # guard: g\n",
        "if b:\n    a()\n    c()  # guard: g\n",
    ),
    "a condition around": (
        Instead("if a:\n    ..."),
        "if b:\n    c(\n        d,\n    )  # guard: h\n    e()  # guard: g\n",
        "if b:\n    c(\n        d,\n    )  # guard: h\n    if a:\n        e()  # guard: g\n",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_becomes_of_a_guard(case: str) -> None:
    how, text, wanted = CASES[case]
    indented = "\n".join(f"    {line}" if line else line for line in text.split("\n"))
    if "return" in text:
        text, wanted = f"def f():\n{indented}", f"def f():\n    {wanted}"
    assert changed(text, "g", how) == wanted
    compile(wanted, "wanted", "exec")


@pytest.mark.parametrize(
    ("how", "text", "why"),
    [
        (NEVER, "a = b", "there 0 times"),
        (NEVER, "a = b  # guard: g\nc = d  # guard: g", "there 2 times"),
        (NEVER, "# guard: g\n\na = b", "nothing begins on the line"),
        (NEVER, "a()  # guard: g", "decides nothing"),
        (ALWAYS, "a = [b for b in c if d if e]  # guard: g", "2 conditions, not one"),
        (Gives("1"), "pass  # guard: g", "neither a test nor a value"),
        (SKIP, "if a:\n    b()\nelif c:  # guard: g\n    d()", "not a statement of its own"),
        (Instead("a()"), "b(\n    c=1,  # guard: g\n)", "not a statement of its own"),
        (Without("c"), "a = b and d  # guard: g", "0 terms with the name 'c'"),
        (Without("b"), "a = b and (b or c)  # guard: g", "2 terms with the name 'b'"),
        (Swap("c", "d"), "a = b  # guard: g", "'c' 0 times"),
        (Swap("b", "d"), "a = b + b  # guard: g", "'b' 2 times"),
    ],
)
def test_what_does_not_fit_is_refused(how: How, text: str, why: str) -> None:
    with pytest.raises(NotPlanted, match=why):
        changed(text, "g", how)


def test_a_guard_is_found_in_whatever_file_it_is(tmp_path: Path) -> None:
    package = tmp_path / "strandline" / "log"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("a = 1  # guard: one\n")
    (package / "log.py").write_text("a = 1  # guard: two\nb = 2  # guard: three\n")
    (package / "other.py").write_text("# guard: three\nb = 2\n")
    assert module_of("one", tmp_path) == "strandline.log"
    assert module_of("two", tmp_path) == "strandline.log.log"
    with pytest.raises(NotPlanted, match=r"here it is strandline\.log\.log:2 and strandline\.log\.other:1"):
        module_of("three", tmp_path)
    with pytest.raises(NotPlanted, match="here it is no line of the source"):
        module_of("four", tmp_path)
    assert list(marks(tmp_path)) == ["one", "two", "three"]


def test_lines_with_a_mark_are_lines_that_occur_once() -> None:
    text = "a()\n# guard: g\nb()\na()\nb()  # guard: g2\n"
    old, new = differing_lines(text, changed(text, "g", Instead("c()\n...")), 2)
    assert (old, new) == ("# guard: g\n", "# guard: g\nc()\n")
    assert mutated(text, "file", old, new) == changed(text, "g", Instead("c()\n..."))
    assert differing_lines(text, changed(text, "g", SKIP), 2) == ("# guard: g\nb()\n", "# guard: g\npass\n")


def test_other_mutants_know_nothing_of_marks() -> None:
    text = "a()  # guard: g\n    # guard: h\n    b()  # why\n"
    assert without_marks(text) == "a()\n    b()  # why\n"
    assert mutated(text, "file", "a()\n    b()", "c()") == "c()  # why\n"
    assert mutated(text, "file", "a()  # guard: g\n", "") == "    # guard: h\n    b()  # why\n"
