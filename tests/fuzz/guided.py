"""One target under atheris, which looks for inputs that reach new code: `python -m tests.fuzz.guided TARGET FOLDER …`.

FOLDER holds the corpus, and gets what is found; the other arguments are libFuzzer's. An input that breaks a promise is
written to FOLDER-found/, and ends the run.
"""

import os
import sys

import atheris

WHAT = ["strandline.wire", "strandline.server.network.framing", "strandline.log"]


def main(name: str, folder: str, options: list[str]) -> None:
    with atheris.instrument_imports(include=WHAT):
        from tests.fuzz.targets import TARGETS

        from strandline.wire import codec

    plain = codec._compiled
    codec._compiled = lambda *arguments: atheris.instrument_func(
        plain(*arguments)
    )  # what is made from schemas counts too
    os.makedirs(folder, exist_ok=True)
    os.makedirs(f"{folder}-found", exist_ok=True)
    limits = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=3000", f"-artifact_prefix={folder}-found/"]
    atheris.Setup([sys.argv[0], folder, *limits, *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
