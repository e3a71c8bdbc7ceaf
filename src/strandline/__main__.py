"""`python -m strandline`."""

from strandline.cli.main import run

if __name__ == "__main__":
    run()
