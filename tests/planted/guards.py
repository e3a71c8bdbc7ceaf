"""Guards in our own source: where a mark stands, and what it marks.

A mark is a comment, `# guard: NAME`, at the end of a line or alone on the line above. It marks the outermost statement,
case, argument or term that begins on this line. Rows name guards, not files: a guard may move to another file.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import TypeAlias

import strandline
from strandline.base.value import Value

ROOT = Path(strandline.__file__).parents[1]
MARK = re.compile(r"# guard: (\S+)$")
Node: TypeAlias = ast.stmt | ast.match_case | ast.keyword | ast.expr


class NotPlanted(Exception):
    """The bug would not be there, so nothing that follows would mean anything."""


class Place(Value, frozen=True):
    module: str
    line: int  # of the mark


@cache
def marks(root: Path = ROOT) -> dict[str, list[Place]]:
    """All marks below a folder, by name."""
    found: dict[str, list[Place]] = {}
    for path in sorted((root / "strandline").rglob("*.py")):
        text = path.read_text()
        if "# guard: " in text:
            module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            for line, name in lines_of(text):
                found.setdefault(name, []).append(Place(module, line))
    return found


def without_marks(text: str) -> str:
    """The text as if no guard were marked."""
    alone = re.sub(r"^ *# guard: \S+\n", "", text, flags=re.MULTILINE)
    return re.sub(r"  # guard: \S+$", "", alone, flags=re.MULTILINE)


def lines_of(text: str) -> list[tuple[int, str]]:
    matches = ((at, MARK.search(line)) for at, line in enumerate(text.split("\n"), 1))
    return [(at, match[1]) for at, match in matches if match is not None]


def module_of(name: str, root: Path = ROOT) -> str:
    places = marks(root).get(name, [])
    if len(places) != 1:
        where = " and ".join(f"{place.module}:{place.line}" for place in places) or "no line of the source"
        raise NotPlanted(f"one line has the mark `# guard: {name}`, and here it is {where}")
    return places[0].module


def path_of(module: str, root: Path = ROOT) -> str:
    """Below the root."""
    path = module.replace(".", "/")
    return f"{path}/__init__.py" if (root / path).is_dir() else f"{path}.py"


def source_of(module: str, root: Path = ROOT) -> str:
    return (root / path_of(module, root)).read_text()


class Guard:
    """One marked place in the text of one file."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.lines = text.split("\n")
        lines = [line for line, found in lines_of(text) if found == name]
        if len(lines) != 1:
            raise NotPlanted(f"the mark `# guard: {name}` is there {len(lines)} times, not once")
        self.mark_line = lines[0]
        is_above = self.lines[self.mark_line - 1].lstrip().startswith("#")
        self.line = self.mark_line + is_above
        self.node = self.marked()

    def marked(self) -> Node:
        nodes = list(ast.walk(ast.parse(self.text)))  # outer nodes come before those in them
        for node in nodes:
            if isinstance(node, ast.stmt) and node.lineno == self.line:
                return node
        for node in nodes:
            if isinstance(node, ast.match_case) and node.pattern.lineno == self.line:
                return node
        within = [node for node in nodes if isinstance(node, ast.expr | ast.keyword) and node.lineno == self.line]
        if not within:
            raise NotPlanted(f"nothing begins on the line that is marked with {self.name}")
        return min(within, key=lambda node: node.col_offset)

    @property
    def value(self) -> ast.expr:
        """The test of a condition, or the value of anything else."""
        match self.node:
            case ast.If() | ast.While() | ast.Assert():
                return self.node.test
            case ast.For():
                return self.node.iter
            case ast.match_case() if self.node.guard is not None:
                return self.node.guard
            case ast.expr():
                return self.node
            case ast.Return() | ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Expr() | ast.keyword():
                if self.node.value is not None:
                    return self.node.value
        raise self.unfit("has neither a test nor a value")

    @property
    def condition(self) -> ast.expr:
        """What decides: the test, that of a conditional expression or of a comprehension, or else the value."""
        if isinstance(self.node, ast.Expr):
            raise self.unfit("is done, and decides nothing")
        value = self.value
        if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
            inner = value.args[0]
            if isinstance(inner, ast.GeneratorExp) and inner.generators[0].ifs:
                value = inner
        if isinstance(value, ast.IfExp):
            return value.test
        if isinstance(value, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            tests = [test for each in value.generators for test in each.ifs]
            if len(tests) != 1:
                raise self.unfit(f"has {len(tests)} conditions, not one")
            return tests[0]
        return value

    def unfit(self, why: str) -> NotPlanted:
        return NotPlanted(f"what is marked with {self.name} {why}: {self.lines[self.line - 1].strip()!r}")

    def offset(self, line: int, column: int) -> int:
        """Columns count bytes."""
        before = sum(len(one) + 1 for one in self.lines[: line - 1])
        return before + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.stmt | ast.expr | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def with_text(self, span: tuple[int, int], new: str) -> str:
        return self.text[: span[0]] + new + self.text[span[1] :]
