"""No file of these packages imports itself through others, not for types either: each can be read before its users."""

import grimp
import pytest

PACKAGES = ("quorum", "controller", "group", "broker", "server")


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    graph = grimp.build_graph("strandline")
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


@pytest.mark.parametrize("package", PACKAGES)
def test_files_form_no_circle(package: str, imports: dict[str, set[str]]) -> None:
    inside = {module for module in imports if module.startswith(f"strandline.{package}.")}
    left = {module: imports[module] & inside for module in sorted(inside)}
    while leaves := [module for module, needs in left.items() if not needs & left.keys()]:
        for module in leaves:
            del left[module]
    assert not left, f"these files, and whatever they rest on, need each other: {sorted(left)}"
