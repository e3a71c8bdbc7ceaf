"""In which seeds does a mutant do anything else than the source? One run of a seed tells it of all mutants at once.

The source is instrumented: where a mutant changes an expression, both forms are evaluated, and the run goes on with the
source's own; where it changes statements, being there counts as a difference. A seed in which nothing ever differs is
the same with the mutant, and there is nothing to be found in it. A test holds that looking changes nothing.
"""

import ast
import gc
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

import msgspec
from tests.mutants.mutant import Mutant, mutated, read

from strandline.base.value import Value

PURE = frozenset(  # functions and methods that may be called once more than the source does
    re.findall(
        r"\w+",
        "len min max any all sum sorted abs int str bool tuple list set dict frozenset range isinstance type enumerate"
        " zip get items keys values union intersection difference issubset issuperset startswith endswith",
    )
)
UNEVALUATED = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.Starred)
PLAIN = (bool, int, str, bytes, type(None), tuple, frozenset)  # equal ones are the same to whoever gets them
Place = tuple[ast.AST, str, int]  # a list of statements of a node, and where in it


class Looked(Value, frozen=True):
    """What a seed came to, and the mutants that do something else in it."""

    seed: int
    events: int  # what it costs
    digest: str
    check: str  # what failed in the source as it is; empty: nothing
    names: tuple[str, ...]


class Spot:
    """Where two trees differ: in an expression, or from a statement of a body on."""

    def __init__(self, old: ast.expr | None, new: ast.expr | None, place: Place | None) -> None:
        self.old, self.new, self.place = old, new, place


def spot_of(old: ast.AST, new: ast.AST, place: Place | None = None) -> Spot:
    """The smallest part that differs. Without a place it is no part of a function's body."""
    here = Spot(None, None, place)
    if isinstance(old, ast.expr) and isinstance(new, ast.expr):
        here = Spot(old, new, place) if place and can_evaluate(old) and can_evaluate(new) else here
    if type(old) is not type(new):
        return here
    fields = [name for name in old._fields if not same(getattr(old, name), getattr(new, name))]
    if len(fields) != 1:
        return here
    name = fields[0]
    was, becomes = getattr(old, name), getattr(new, name)
    if isinstance(was, list) and was and isinstance(was[0], ast.stmt):
        index = next((i for i, (a, b) in enumerate(zip(was, becomes, strict=False)) if not same(a, b)), len(was))
        inside = place is not None or isinstance(old, ast.FunctionDef)
        at: Place | None = (old, name, min(index, len(was) - 1)) if inside else None
        one = len(was) == len(becomes) and sum(not same(a, b) for a, b in zip(was, becomes, strict=True)) == 1
        return deeper(was[index], becomes[index], Spot(None, None, at)) if one else Spot(None, None, at)
    if isinstance(was, list):
        unequal = [i for i, (a, b) in enumerate(zip(was, becomes, strict=False)) if not same(a, b)]
        if len(was) != len(becomes) or len(unequal) != 1:
            return here
        return deeper(was[unequal[0]], becomes[unequal[0]], here)
    return deeper(was, becomes, here)


def deeper(old: Any, new: Any, here: Spot) -> Spot:
    if not isinstance(old, ast.AST) or not isinstance(new, ast.AST) or isinstance(old, ast.pattern | ast.JoinedStr):
        return here
    if isinstance(old, ast.ExceptHandler | ast.arguments):
        return here
    found = spot_of(old, new, here.place)
    return found if found.old is not None or found.place != here.place else here


def same(one: Any, other: Any) -> bool:
    return bool(shape(one) == shape(other))


def shape(part: Any) -> Any:
    """All that counts of a part of a tree. A node keeps its own: it is asked for at each level above a difference."""
    if isinstance(part, ast.AST):
        found = part.__dict__.get("shape")
        if found is None:
            found = part.__dict__["shape"] = (type(part), *[shape(getattr(part, name, None)) for name in part._fields])
        return found
    return [shape(each) for each in part] if isinstance(part, list) else (type(part), part)


def can_evaluate(node: ast.expr) -> bool:
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    for part in ast.walk(node):
        if isinstance(part, UNEVALUATED):
            return False
        if isinstance(part, ast.Call):
            name = part.func.id if isinstance(part.func, ast.Name) else getattr(part.func, "attr", "")
            if name not in PURE:
                return False
    return True


class Instrumenting(ast.NodeTransformer):
    def __init__(self, spots: Sequence[tuple[str, Spot]]) -> None:
        self.changed: dict[ast.AST, list[tuple[str, ast.expr]]] = {}
        self.marked: dict[ast.AST, list[tuple[str, str, int]]] = {}
        for name, spot in spots:
            if spot.old is not None:
                assert spot.new is not None
                self.changed.setdefault(spot.old, []).append((name, spot.new))
            elif spot.place is not None:
                owner, field, index = spot.place
                self.marked.setdefault(owner, []).append((name, field, index))

    def visit(self, node: ast.AST) -> Any:
        visited = self.generic_visit(node)
        for name, new in self.changed.get(node, ()):
            visited = call("_differs", name, thunk(visited), thunk(new))
        for name, field, index in sorted(self.marked.get(node, ()), key=lambda mark: -mark[2]):
            getattr(visited, field).insert(index, ast.Expr(call("_reached", name)))
        return visited


def call(what: str, name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(what, ast.Load()), [ast.Constant(name), *arguments], [])


def thunk(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


class Differing:
    """What differed since it was asked last."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def reached(self, name: str) -> None:
        self.names[name] = None

    def differs(self, name: str, old: Callable[[], Any], new: Callable[[], Any]) -> Any:
        value = old()
        if name not in self.names:
            try:
                other = new()
            except Exception:  # it would have ended the mutant's run, or gone another way
                self.names[name] = None
                return value
            if not isinstance(value, PLAIN) or type(value) is not type(other) or value != other:
                self.names[name] = None
        return value


class Finder(MetaPathFinder):
    """Compiles modules in which mutants change something with all of these spots in them."""

    def __init__(self, mutants: Iterable[Mutant]) -> None:
        self.differing = Differing()
        self.always: set[str] = set()
        self.trees: dict[str, ast.Module] = {}
        by_file: dict[str, list[tuple[str, str, str]]] = {}
        for mutant in mutants:
            for file, old, new in mutant.changes:
                by_file.setdefault(file, []).append((mutant.name, old, new))
        for file, changes in by_file.items():
            source = read(file)
            tree = ast.parse(source)
            spots = [(name, spot_of(tree, ast.parse(mutated(source, file, old, new)))) for name, old, new in changes]
            self.always.update(name for name, spot in spots if spot.old is None and spot.place is None)
            module = f"strandline.{file.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
            self.trees[module] = ast.fix_missing_locations(Instrumenting(spots).visit(tree))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.trees:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = Loader(self, fullname, spec.origin)
        spec.cached = None
        return spec


class Loader(SourceFileLoader):
    def __init__(self, finder: Finder, module: str, path: str) -> None:
        super().__init__(module, path)
        self.finder = finder

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.finder.trees[fullname], self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(_differs=self.finder.differing.differs, _reached=self.finder.differing.reached)
        super().exec_module(module)


def work() -> None:
    """Seeds come in, one a line, and what was seen of each goes out."""
    from tests.mutants.rows import MUTANTS

    finder = Finder(MUTANTS.values())
    sys.meta_path.insert(0, finder)
    from strandline.sim.runs.plan import draw_plan
    from strandline.sim.runs.run import run_plan

    for line in sys.stdin:
        finder.differing.names.clear()
        gc.disable()
        outcome = run_plan(draw_plan(int(line)))
        gc.enable()
        gc.collect()
        names = tuple(dict.fromkeys([*sorted(finder.always), *finder.differing.names]))
        looked = Looked(outcome.seed, outcome.events, outcome.digest, outcome.check, names)
        sys.stdout.buffer.write(msgspec.json.encode(looked) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    work()
