"""No file imports itself, straight or through others, also not for its types alone."""

import grimp


def test_no_files_form_a_circle() -> None:
    graph = grimp.build_graph("strandline", "strandline_spark", cache_dir=None)
    left = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    while free := [module for module, imported in left.items() if not imported & left.keys()]:
        for module in free:  # it imports nothing that is left, so it is in no circle
            del left[module]
    imported = set().union(*left.values()) if left else set()
    assert sorted(left.keys() & imported) == []
