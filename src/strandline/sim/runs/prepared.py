"""What a process does before it imports the simulator: the way in for tests, which plant bugs into what is imported.

It is named as `MODULE:NAME`; the module's `install` is called with the name.
"""

from importlib import import_module


def prepare(wish: str) -> None:
    if wish:
        module, _, name = wish.partition(":")
        import_module(module).install(name)
