"""What a wheel must have and Python's imports do not show: the modules by whose names Spark finds our formats."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_all_that_lies_beside_the_package_is_named_for_the_wheel() -> None:
    """Else `pip install` leaves them out, and only a checkout knows `format("strandline")`."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    beside = {f"src/{path.name}": path.name for path in (ROOT / "src").glob("*.py")}
    assert len(beside) == 2
    assert wheel["force-include"] == beside
    assert wheel["packages"] == ["src/strandline"]
    assert all(name.startswith("pyspark_") for name in beside.values()), "Spark looks at no others"
