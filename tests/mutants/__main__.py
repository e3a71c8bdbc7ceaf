"""Do the tests find small wrong changes of the source? And the simulator?

    python -m tests.mutants                                  # each mutant's own tests must fail with it
    python -m tests.mutants --only fetch                     # those with this in their names
    python -m tests.mutants --page                           # sentences of docs/*protocol.md without a mutant
    python -m tests.mutants --by-simulator --seeds 60        # how many of them drawn seeds find

Ends with status 1 if a mutant survives its tests, if its row fits the source no more, or, with --page, if a sentence
has no mutant.
"""

import argparse
import json
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec
from tests.mutants.differing import Looked
from tests.mutants.mutant import Breaks, Mutant
from tests.mutants.page import sentences, unheld
from tests.mutants.rows import MUTANTS
from tests.mutants.running import SURVIVED, Verdict, Workshop, why_unsound, workshop
from tests.mutants.simulating import Hunt, hunt, look

FIRST_SEED = 1_000_001  # a range that nothing else draws from
T = TypeVar("T")


def each(mutants: Sequence[Mutant], jobs: int, work: Callable[[Workshop, Mutant], T]) -> Iterator[T]:
    """What `work` makes of each mutant, in the order in which it is ready."""
    left = iter(mutants)
    lock = threading.Lock()
    done: queue.SimpleQueue[T | None] = queue.SimpleQueue()

    def following() -> Mutant | None:
        with lock:
            return next(left, None)

    def drive() -> None:
        try:
            with workshop() as shop:
                while (mutant := following()) is not None:
                    done.put(work(shop, mutant))
        finally:
            done.put(None)

    running = min(jobs, len(mutants))
    for _ in range(running):
        threading.Thread(target=drive, daemon=True).start()
    while running:
        result = done.get()
        if result is None:
            running -= 1
        else:
            yield result


def by_tests(mutants: Sequence[Mutant], jobs: int, *, is_json: bool) -> int:
    why = why_unsound(mutants)
    if why:
        print(why, file=sys.stderr)
        return 1
    verdicts: list[Verdict] = []
    for verdict in each(mutants, jobs, Workshop.judge):
        verdicts.append(verdict)
        print_line(
            f"{len(verdicts)}/{len(mutants)} {verdict.verdict}: {verdict.name}{f' ({verdict.why})' * bool(verdict.why)}"
        )
    bad = [verdict for verdict in verdicts if not verdict.is_ok]
    without = unheld(mutants)
    if is_json:
        print(json.dumps({"verdicts": msgspec.to_builtins(verdicts), "sentences without": len(without)}, indent=1))
    else:
        survived = sum(verdict.verdict == SURVIVED for verdict in verdicts)
        print(f"{len(verdicts) - len(bad)} killed, {survived} survived, {len(bad) - survived} wrong")
    return 1 if bad else 0


def by_simulator(mutants: Sequence[Mutant], jobs: int, seeds: range, *, is_json: bool) -> int:
    sought = [mutant for mutant in mutants if mutant.breaks is not Breaks.ANSWERS]
    looked: list[Looked] = []
    for one in look(seeds):
        looked.append(one)
        print_line(f"seed {one.seed}: {len(one.names)} mutants differ in it")
        if one.check:
            print(f"without any mutant seed {one.seed} fails: {one.check}", file=sys.stderr)
            return 1
    hunts: list[Hunt] = []
    for found in each(sought, jobs, lambda shop, mutant: hunt(shop, mutant, looked)):
        hunts.append(found)
        which = f"the {found.seeds}. of {found.differing} in which it differs"
        what = f"by seed {found.seed}, {which} ({found.check})" if found.seed >= 0 else f"not found, {which}"
        print_line(f"{len(hunts)}/{len(sought)} {found.name}: {what}, {found.seconds} s")
    count = sum(found.seed >= 0 for found in hunts)
    if is_json:
        print(json.dumps(msgspec.to_builtins(hunts), indent=1))
    else:
        for found in hunts:
            if found.seed < 0:
                print(f"not found: {found.name} ({found.breaks}; differs in {found.differing} of {len(seeds)} seeds)")
        share = 100 * count // max(1, len(hunts))
        print(f"{count} of {len(hunts)} found within {len(seeds)} seeds: {share} %")
    return 0


def by_page(mutants: Sequence[Mutant]) -> int:
    without = unheld(list(mutants))
    for sentence in without:
        print(sentence.title)
    print(f"{len(without)} of {len(sentences())} sentences without a mutant")
    return 1 if without else 0


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutants with this in their names or files")
    parser.add_argument("--every", type=int, default=1, help="of these one in so many, to know sooner")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--page", action="store_true", help="list the sentences that have no mutant, and do nothing else"
    )
    parser.add_argument("--by-simulator", action="store_true")
    parser.add_argument("--seeds", type=int, default=60, help="for each mutant at most")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="the first seed")
    options = parser.parse_args()
    named = [mutant for mutant in MUTANTS.values() if mutant.is_about(options.only)]
    mutants = named[:: max(1, options.every)]
    if not mutants:
        print(f"no mutant has {options.only!r} in its name", file=sys.stderr)
        return 2
    if options.page:
        return by_page(mutants)
    if options.by_simulator:
        seeds = range(options.first, options.first + options.seeds)
        return by_simulator(mutants, options.jobs, seeds, is_json=options.json)
    return by_tests(mutants, options.jobs, is_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
