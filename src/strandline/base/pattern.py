"""Regular expressions that a stranger sends, matched in a bounded number of steps.

Python's own matcher tries one way after the other, and a short pattern can keep it busy for years. This one follows all
ways at once, as RE2 does, and refuses what RE2 refuses: look-ahead and references to groups.
"""

from collections.abc import Callable, Iterator

DEPTH_MAX = 50  # groups within groups
PROGRAM_MAX = 2_000  # instructions of one pattern
STEPS_MAX = 500_000  # of one pattern, over all texts
REPEATS_MAX = 1_000
CLASSES: dict[str, Callable[[str], bool]] = {
    "d": lambda c: c in "0123456789",
    "w": lambda c: c == "_" or (c.isascii() and c.isalnum()),
    "s": lambda c: c in "\t\n\f\r ",
}
ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "v": "\v"}

Test = Callable[[str], bool]
# What a pattern is built of: an emitter appends its instructions to a program. ("char", test), ("split", to, to),
# ("jump", to), ("begin",), ("end",), ("match",)
Instruction = tuple[str, Test | None, int, int]
Emit = Callable[[list[Instruction]], None]


class Invalid(Exception):
    """This is no pattern, or one that asks for too much."""


class Pattern:
    def __init__(self, text: str) -> None:
        """Raises Invalid."""
        self.program: list[Instruction] = []
        Parser(text).whole()(self.program)
        emit(self.program, "match")
        assert all(max(one, other) < len(self.program) for _, _, one, other in self.program), "a way leads somewhere"
        self.steps = 0
        self.first = self.closure([0], is_first=True)
        self.moves: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matches(self, text: str) -> bool:
        """Does it match all of the text? Raises Invalid if that takes too many steps."""
        states = self.first
        for character in text:
            if not states:
                return False
            following = self.moves.get((states, character))
            if following is None:
                following = self.moves[(states, character)] = self.closure(self.moved(states, character))
            states = following
        return any(self.program[at][0] == "match" for at in self.closure(states, is_last=True, is_first=not text))

    def moved(self, states: frozenset[int], character: str) -> list[int]:
        moved = []
        self.steps += len(states)
        for at in states:
            kind, test, _, _ = self.program[at]
            if kind == "char" and test is not None and test(character):
                moved.append(at + 1)
        return moved

    def closure(
        self, begin: list[int] | frozenset[int], *, is_first: bool = False, is_last: bool = False
    ) -> frozenset[int]:
        """All instructions that wait for a character, or for the end, when these are reached."""
        found: set[int] = set()
        left = list(begin)
        seen = set(left)
        while left:
            self.steps += 1
            if self.steps > STEPS_MAX:
                raise Invalid("it takes too many steps")
            at = left.pop()
            kind, _, one, other = self.program[at]
            if kind in ("char", "match", "end"):
                found.add(at)
            following = {"split": (one, other), "jump": (one,)}.get(kind, ())
            if (kind == "begin" and is_first) or (kind == "end" and is_last):
                following = (at + 1,)
            for to in following:
                if to not in seen:
                    seen.add(to)
                    left.append(to)
        return frozenset(found)


def emit(program: list[Instruction], kind: str, test: Test | None = None, one: int = -1, other: int = -1) -> int:
    if len(program) >= PROGRAM_MAX:
        raise Invalid("it is too large")
    program.append((kind, test, one, other))
    assert len(program) <= PROGRAM_MAX
    return len(program) - 1


class Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def next(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        character = self.next()
        if not character:
            raise Invalid("it ends too early")
        self.at += 1
        return character

    def takes(self, wanted: str) -> bool:
        assert wanted, "nothing is always there: who repeats this would not end"
        found = self.text.startswith(wanted, self.at)
        self.at += len(wanted) if found else 0
        return found

    def whole(self) -> Emit:
        emitted = self.alternatives()
        if self.next():
            raise Invalid(f"nothing was opened before {self.at}")
        assert self.at == len(self.text) and self.depth == 0
        return emitted

    def alternatives(self) -> Emit:
        ways = [self.sequence()]
        while self.takes("|"):
            ways.append(self.sequence())

        def emit_ways(program: list[Instruction]) -> None:
            jumps = []
            for way in ways[:-1]:
                split = emit(program, "split")
                way(program)
                jumps.append(emit(program, "jump"))
                program[split] = ("split", None, split + 1, len(program))
            ways[-1](program)
            assert len(jumps) == len(ways) - 1, "each way but the last one leads around those behind it"
            for jump in jumps:
                program[jump] = ("jump", None, len(program), -1)

        return emit_ways

    def sequence(self) -> Emit:
        parts = []
        while self.next() not in ("", "|", ")"):
            parts.append(self.repeated())

        def emit_parts(program: list[Instruction]) -> None:
            for part in parts:
                part(program)

        return emit_parts

    def repeated(self) -> Emit:
        part = self.atom()
        counts = self.counts()
        if counts is None:
            return part
        self.takes("?")  # the shortest match, or the longest: all of the text is matched
        if self.next() in ("*", "+", "?"):
            raise Invalid("a repetition is repeated")
        least, most = counts
        assert least >= 0 and (most is None or most >= least)

        def emit_repeated(program: list[Instruction]) -> None:
            size = len(program)
            for _ in range(least):
                part(program)
                if len(program) == size:
                    return  # nothing, however often
            splits = []
            for _ in range(1 if most is None else most - least):
                splits.append(emit(program, "split"))
                part(program)
            assert splits or most == least, "a repetition without an end has one way out"
            if most is None:
                emit(program, "jump", None, splits[0])
            for split in splits:
                program[split] = ("split", None, split + 1, len(program))

        return emit_repeated

    def counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.takes(sign):
                return counts
        end = self.text.find("}", self.at)
        if self.next() != "{" or end < 0:
            return None
        least, comma, most = self.text[self.at + 1 : end].partition(",")
        if not all(part.isascii() and part.isdigit() for part in (least, most or "0")):
            return None  # a brace that means itself
        self.at = end + 1
        first = int(least[:5])
        last = int(most[:5]) if most else None if comma else first
        if max(first, last or 0) > REPEATS_MAX or (last is not None and last < first):
            raise Invalid("a number of repetitions is not valid")
        assert 0 <= first <= REPEATS_MAX and (last is None or first <= last <= REPEATS_MAX)
        return first, last

    def atom(self) -> Emit:
        character = self.take()
        match character:
            case "(":
                return self.group()
            case "[":
                return one_of(self.character_class())
            case "*" | "+" | "?":
                raise Invalid("nothing is there to repeat")
            case ".":
                return one_of(lambda c: c != "\n")
            case "^" | "$":
                return anchor("begin" if character == "^" else "end")
            case "\\":
                return one_of(self.escape())
            case _:
                return one_of(lambda c: c == character)

    def group(self) -> Emit:
        if self.takes("?") and not self.takes(":"):
            raise Invalid("groups have no options")
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise Invalid("it is too deep")
        emitted = self.alternatives()
        self.depth -= 1
        assert self.depth >= 0, "each group is left once"
        if not self.takes(")"):
            raise Invalid("a group is not closed")
        return emitted

    def escape(self) -> Test:
        character = self.take()
        test = CLASSES.get(character.lower())
        if test is not None:
            return test if character.islower() else lambda c: not test(c)
        if character in ESCAPED:
            return lambda c: c == ESCAPED[character]
        if character.isascii() and character.isalnum():
            raise Invalid(f"\\{character} is not known")
        return lambda c: c == character

    def character_class(self) -> Test:
        is_negated = self.takes("^")
        tests = list(self.members())

        def test(character: str) -> bool:
            return any(one(character) for one in tests) is not is_negated

        return test

    def members(self) -> Iterator[Test]:
        is_first = True
        while is_first or self.next() != "]":
            is_first = False
            begin = self.take()
            if begin == "\\":
                yield self.escape()
            elif self.next() == "-" and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                end = self.take()
                if end < begin or end == "\\":
                    raise Invalid("a range is not valid")
                yield between(begin, end)
            else:
                yield between(begin, begin)
        self.at += 1


def one_of(test: Test) -> Emit:
    def emit_one(program: list[Instruction]) -> None:
        emit(program, "char", test)

    return emit_one


def anchor(kind: str) -> Emit:
    def emit_anchor(program: list[Instruction]) -> None:
        emit(program, kind)

    return emit_anchor


def between(begin: str, end: str) -> Test:
    assert begin <= end, "no character would match"
    return lambda c: begin <= c <= end
