"""`python -m tests.planted`: what the simulator finds in code with a bug.

python -m tests.planted list [--json]                        the bugs
python -m tests.planted NAME [--seeds A..B] [--jobs N]       run seeds until one finds it; exit status 0 if one does
python -m tests.planted NAME --seed 5 [...]                  `strandline sim --seed 5 [...]`, with the bug
python -m tests.planted NAME --plan FILE [...]               likewise
"""

import argparse
import os
import sys
from pathlib import Path

from tests.planted import PLANTED, Planted, install


def main(arguments: list[str]) -> int:
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if name == "list":
        list_planted(as_json="--json" in rest)
        return 0
    if name not in PLANTED:
        print(f"there is no planted bug named {name!r}: `python -m tests.planted list` lists them", file=sys.stderr)
        return 2
    if any(argument.partition("=")[0] in ("--seed", "--plan") for argument in rest):
        planted = install(name)
        from strandline.cli.main import run

        workload = ["--workload", planted.workload] if planted.workload else []
        secured = ["--secured", planted.secured] if planted.secured else []
        sys.argv = ["strandline", "sim", *workload, *secured, *rest]
        run()
        return 0
    parser = argparse.ArgumentParser(prog=f"python -m tests.planted {name}")
    parser.add_argument("--seeds", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(rest)
    return hunt(PLANTED[name], options.seeds, options.jobs)


def hunt(planted: Planted, seeds: str, jobs: int) -> int:
    """Run seeds with the bug, or its plan, until one of them finds it."""
    from strandline.cli.lab.sim import followed, parse_seeds, verdict
    from strandline.sim.runs.campaign import outcomes

    chosen, path = (parse_seeds(seeds), None) if seeds else (planted.tries, planted.path)
    running = outcomes(
        chosen,
        jobs,
        prepare=f"tests.planted:{planted.name}",
        plan=path,
        workload=planted.workload,
        secured=planted.secured,
    )
    for outcome in followed(running, len(chosen), planted.name, lambda: 0):
        if not outcome.is_ok:
            print(f"{planted.name} ({planted.trap}): {planted.harm}\nfound: {verdict(outcome)}")
            print(f"    {again(planted, path, outcome.seed)}")
            return 0
    print(f"{planted.name}: not found by seeds {chosen[0]}..{chosen[-1]}", file=sys.stderr)
    return 1


def again(planted: Planted, path: Path | None, seed: int) -> str:
    """The command that runs this once more. A plan has a seed of its own, and need not find it with that one."""
    from strandline.sim.runs.plan import read_plan

    if path is None:
        return f"python -m tests.planted {planted.name} --seed {seed}"
    if read_plan(path.read_bytes()).seed == seed:
        return f"python -m tests.planted {planted.name} --plan {path}"
    worker = f"strandline.sim.runs.worker tests.planted:{planted.name} '{planted.workload}' '{planted.secured}'"
    return f"echo '{seed} {path}' | python -m {worker}"


def list_planted(*, as_json: bool) -> None:
    if as_json:
        import msgspec

        sys.stdout.buffer.write(msgspec.json.encode(list(PLANTED.values())) + b"\n")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "trap", "what goes wrong", "found by", box=None)
    for planted in PLANTED.values():
        table.add_row(planted.name, planted.trap, planted.harm, planted.found_by)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
