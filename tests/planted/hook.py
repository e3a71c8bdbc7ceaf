"""Plants a bug: the next import of one module compiles changed source.

Call `install` in a fresh process, before anything imports the module. This package imports nothing that a bug may be
planted in. The changed code never touches the cache of compiled files, in either
direction. Whatever would leave the bug without effect is an error.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from tests.planted.planted import Change, Planted
from tests.planted.tables import PLANTED

import strandline

ROOT = Path(strandline.__file__).parents[1]


class NotPlanted(Exception):
    """The bug would not be there, so nothing that follows would mean anything."""


def install(name: str) -> Planted:
    """Plant the bug of this name. One process has one bug at most."""
    planted = PLANTED.get(name)
    if planted is None:
        raise NotPlanted(f"there is no planted bug named {name!r}")
    for finder in sys.meta_path:
        if isinstance(finder, Finder):
            raise NotPlanted(f"{finder.planted.name} is planted already")
    for change in planted.changes:
        if change.module in sys.modules:
            raise NotPlanted(f"{change.module} is imported already: {name} would have no effect")
        mutated(change, source_of(change.module))
    sys.meta_path.insert(0, Finder(planted))
    return planted


def source_of(module: str) -> str:
    return (ROOT / f"{module.replace('.', '/')}.py").read_text()


def mutated(change: Change, source: str) -> str:
    """The source with the bug in it."""
    count = source.count(change.old)
    if count != 1:
        raise NotPlanted(f"the text to replace occurs {count} times in {change.module}, not once: {change.old!r}")
    return source.replace(change.old, change.new)


class Finder(MetaPathFinder):
    def __init__(self, planted: Planted) -> None:
        self.planted = planted

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        changes = [change for change in self.planted.changes if change.module == fullname]
        if not changes:
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
        source = self.get_data(self.path).decode()
        for change in self.changes:
            source = mutated(change, source)
        return source
