"""Plants a bug: the next import of one module compiles changed source.

Call `install` in a fresh process, before anything imports the module. This package imports nothing that a bug may be
planted in. The changed code never touches the cache of compiled files, in either direction. Whatever would leave the
bug without effect is an error.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from tests.planted.changes import changed
from tests.planted.guards import Guard, NotPlanted, module_of, path_of, source_of
from tests.planted.planted import Change, Planted
from tests.planted.tables import PLANTED


def install(name: str) -> Planted:
    """Plant the bug of this name. One process has one bug at most."""
    planted = PLANTED.get(name)
    if planted is None:
        raise NotPlanted(f"there is no planted bug named {name!r}")
    for finder in sys.meta_path:
        if isinstance(finder, Finder):
            raise NotPlanted(f"{finder.planted.name} is planted already")
    planting = Finder(planted)
    for module, changes in planting.changes.items():
        if module in sys.modules:
            raise NotPlanted(f"{module} is imported already: {name} would have no effect")
        mutated(changes, source_of(module))
    sys.meta_path.insert(0, planting)
    return planted


def changes_by_module(planted: Planted) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for change in planted.changes:
        found.setdefault(module_of(change.guard), []).append(change)
    return found


def mutated(changes: Sequence[Change], source: str) -> str:
    """The source of one module with the bug in it. A second change finds its guard in what the first one has made."""
    for change in changes:
        source = changed(source, change.guard, change.how)
    return source


def replacements(planted: Planted) -> list[tuple[str, str, str]]:
    """Each change of the bug as a file, lines of it that occur once, and the lines in their place."""
    found: list[tuple[str, str, str]] = []
    for module, changes in changes_by_module(planted).items():
        text = source_of(module)
        for change in changes:
            new = mutated([change], text)
            at = Guard(change.guard, text).mark_line
            found.append((path_of(module), *differing_lines(text, new, at)))
            text = new
    return found


def differing_lines(old: str, new: str, mark: int) -> tuple[str, str]:
    """From the first line that differs to the last one, with the mark, which makes them unique."""
    before, after = old.split("\n"), new.split("\n")
    pairs = zip(before, after, strict=False)
    start = min(mark - 1, next(at for at, (one, other) in enumerate(pairs) if one != other))
    tail = 0
    while tail < len(before) - mark and tail < len(after) - start and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    lines = before[start : len(before) - tail], after[start : len(after) - tail]
    return "".join(f"{line}\n" for line in lines[0]), "".join(f"{line}\n" for line in lines[1])


class Finder(MetaPathFinder):
    def __init__(self, planted: Planted) -> None:
        self.planted = planted
        self.changes = changes_by_module(planted)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        changes = self.changes.get(fullname)
        if changes is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            raise NotPlanted(f"{fullname} has no source file")
        spec.loader = Loader(changes, fullname, spec.origin)
        spec.cached = None
        return spec


class Loader(SourceFileLoader):
    def __init__(self, changes: list[Change], module: str, path: str) -> None:
        super().__init__(module, path)
        self.changes = changes

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.get_source(fullname), self.path, "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        return mutated(self.changes, self.get_data(self.path).decode())
