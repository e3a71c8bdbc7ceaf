"""What becomes of a guard in a planted bug. None of this repeats the source where it need not."""

import ast
import re
import textwrap
from enum import Enum
from typing import TypeAlias

from tests.planted.guards import Guard

from strandline.base.value import Value

WORD = re.compile(r"\w+|[<>=!+\-*/|&%^:]+|\S")  # a name, a number, an operator, a parenthesis


class Plain(Enum):
    NEVER = "never"  # the condition is never true: a test, that of the one conditional expression, or a value
    ALWAYS = "always"
    SKIP = "skip"  # the statement does nothing, the argument is left out


NEVER, ALWAYS, SKIP = Plain.NEVER, Plain.ALWAYS, Plain.SKIP


class Without(Value, frozen=True, tag=True):
    """A condition lacks the one term that mentions this name."""

    name: str


class Swap(Value, frozen=True, tag=True):
    """A few words that the marked line has once are others."""

    old: str
    new: str


class Gives(Value, frozen=True, tag=True):
    """The test or the value is this one. `...` in it is the one of before."""

    value: str


class Instead(Value, frozen=True, tag=True):
    """Other statements take the place of the marked one. `...`, alone on a line, is the marked one."""

    text: str


How: TypeAlias = Plain | Without | Swap | Gives | Instead


def changed(text: str, guard_name: str, how: How) -> str:
    """The text of the file with the bug in it."""
    guard = Guard(guard_name, text)
    match how:
        case Plain.NEVER | Plain.ALWAYS:
            return guard.with_text(guard.span(guard.condition), str(how is ALWAYS))
        case Plain.SKIP:
            return skipped(guard)
        case Without():
            return without(guard, how.name)
        case Swap():
            return swapped(guard, how)
        case Gives():
            span = guard.span(guard.value)
            return guard.with_text(span, f"({how.value.replace('...', f'({guard.text[slice(*span)]})')})")
        case Instead():
            return replaced(guard, how.text)


def skipped(guard: Guard) -> str:
    node = guard.node
    if isinstance(node, ast.keyword):
        start, end = guard.span(node)
        return guard.with_text((start, end + guard.text[end:].startswith(",")), "")
    return guard.with_text(statement(guard), "pass")


def statement(guard: Guard) -> tuple[int, int]:
    if not isinstance(guard.node, ast.stmt) or guard.lines[guard.line - 1].lstrip().startswith("elif"):
        raise guard.unfit("is not a statement of its own")
    return guard.span(guard.node)


def without(guard: Guard, name: str) -> str:
    terms = {
        term: isinstance(both.op, ast.And)
        for both in ast.walk(guard.value)
        if isinstance(both, ast.BoolOp)
        for term in both.values
        if name in names_in(term)
    }
    innermost = [term for term in terms if not any(part in terms for part in ast.walk(term) if part is not term)]
    if len(innermost) != 1:
        raise guard.unfit(f"has {len(innermost)} terms with the name {name!r}, not one")
    return guard.with_text(guard.span(innermost[0]), str(terms[innermost[0]]))


def names_in(node: ast.AST) -> set[str]:
    parts = list(ast.walk(node))
    return {part.id for part in parts if isinstance(part, ast.Name)} | {
        part.attr for part in parts if isinstance(part, ast.Attribute)
    }


def swapped(guard: Guard, swap: Swap) -> str:
    """Words are compared, so a line may be broken in another way."""
    node = guard.node
    head = guard.value if isinstance(node, ast.If | ast.While | ast.For | ast.match_case) else node
    assert not isinstance(head, ast.match_case)
    start, end = guard.span(head)
    words, sought = words_of(guard.text[start:end]), [word for word, _, _ in words_of(swap.old)]
    count = len(sought)
    found = [at for at in range(len(words)) if [word for word, _, _ in words[at : at + count]] == sought]
    if len(found) != 1:
        raise guard.unfit(f"has {swap.old!r} {len(found)} times, not once")
    return guard.with_text((start + words[found[0]][1], start + words[found[0] + count - 1][2]), swap.new)


def words_of(text: str) -> list[tuple[str, int, int]]:
    """Each word, and where it begins and ends."""
    return [(match[0], match.start(), match.end()) for match in WORD.finditer(text)]


def replaced(guard: Guard, text: str) -> str:
    start, end = statement(guard)
    line = guard.lines[guard.line - 1]
    indentation = line[: len(line) - len(line.lstrip())]
    own = textwrap.dedent(indentation + guard.text[start:end])
    new = re.sub(r"^( *)\.\.\.$", lambda match: textwrap.indent(own, match[1]), text, flags=re.MULTILINE)
    return guard.with_text((start - len(indentation), end), textwrap.indent(new, indentation))
