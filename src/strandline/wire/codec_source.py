"""Lines of generated Python, with indentation and fresh names."""

from typing import Any


class Source:
    """Collects the body of one generated function and the constants that it refers to."""

    def __init__(self, constants: dict[str, Any]) -> None:
        self.constants = constants
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0

    def add(self, line: str) -> None:
        assert "\n" not in line, "one line"
        self.lines.append("    " * self.depth + line)

    def open(self, line: str) -> None:
        """A line that ends in a colon: what follows is indented until `close`."""
        assert line.endswith(":"), f"{line!r} opens no block"
        self.add(line)
        self.depth += 1

    def close(self) -> None:
        assert self.depth > 1, "no block is open"
        self.depth -= 1

    def name(self, stem: str) -> str:
        assert stem.isidentifier()
        self.names += 1
        return f"{stem}_{self.names}"

    def constant(self, stem: str, value: Any) -> str:
        """A name by which the generated code reaches `value`."""
        for name, known in self.constants.items():
            if known is value:
                return name
        name = f"{stem.upper()}_{len(self.constants)}"
        assert name.isidentifier() and name not in self.constants
        self.constants[name] = value
        return name
