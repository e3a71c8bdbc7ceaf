"""`python -m tests.sim.extremes`: each value of each request, and of each message between nodes, at its extremes.

About a minute. Prints each API when it is done; ends with the first case that a node does not bear.
"""

from itertools import groupby

from strandline.sim.stranger.probing import alterations, cases, probe


def main() -> None:
    for name, group in groupby(cases(), key=lambda case: f"{case.api.name} to {case.listener}"):
        chosen = list(group)
        probe(chosen)
        print(f"{name}: {len(chosen)}", flush=True)
    for cls, altered in groupby(alterations(), key=lambda one: one.cls):
        wrong = list(altered)
        probe(wrong)
        print(f"{cls.__name__} altered: {len(wrong)}", flush=True)


if __name__ == "__main__":
    main()
