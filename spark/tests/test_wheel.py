"""What the wheel must have and imports do not show: the modules by whose names Spark finds our formats, and the version
of the core that it was made for."""

import tomllib
from pathlib import Path
from typing import Any

from strandline.base import VERSION

HERE = Path(__file__).parents[1]


def declared() -> dict[str, Any]:
    return tomllib.loads((HERE / "pyproject.toml").read_text())


def test_all_that_lies_beside_the_package_is_named_for_the_wheel() -> None:
    """Else `pip install` leaves them out, and only a checkout knows `format("strandline")`."""
    wheel = declared()["tool"]["hatch"]["build"]["targets"]["wheel"]
    beside = {f"src/{path.name}": path.name for path in (HERE / "src").glob("*.py")}
    assert len(beside) == 2
    assert wheel["force-include"] == beside
    assert wheel["packages"] == ["src/strandline_spark"]
    assert all(name.startswith("pyspark_") for name in beside.values()), "Spark looks at no others"


def test_it_has_the_version_of_the_core_and_needs_no_other() -> None:
    """The two share code that promises nothing to anybody else, such as the client and the formats of logs."""
    project = declared()["project"]
    assert project["version"] == VERSION
    assert f"strandline[clients]=={VERSION}" in project["dependencies"]
