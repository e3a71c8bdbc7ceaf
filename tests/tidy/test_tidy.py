"""House rules about the code's shape that no linter knows, and the architecture page held against the tree."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "strandline"
SPARK = ROOT / "spark" / "src" / "strandline_spark"
FOLDER_FILES_MAX = 15
CORE = ("base", "wire", "log", "metadata", "quorum", "controller", "replica", "coordination", "txn", "group", "broker")
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 50
ASSERTS_MIN = 0.6  # for each function of the core
BARE_SUPPRESSION = re.compile(r"# (?:noqa|type: ignore)[^#\n]*$", re.MULTILINE)
VAGUE = re.compile(r"(manager|util|helper|common|misc|handler|processor)$", re.IGNORECASE)


def files() -> Iterator[tuple[Path, str, ast.Module]]:
    for root in (SOURCE, SPARK):
        for path in sorted(root.rglob("*.py")):
            text = path.read_text()
            yield path.relative_to(root), text, ast.parse(text)


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without the docstring, which may be a command's help."""
    first = node.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring_lines = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
    return (node.end_lineno or 0) - node.lineno + 1 - docstring_lines


def objections(where: Path, node: ast.AST) -> Iterator[str]:
    in_core = where.parts[0] in CORE
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            # What numba compiles is one loop, since a call in it costs.
            is_kernel = any(isinstance(one, ast.Name) and one.id == "compiled" for one in node.decorator_list)
            if code_lines(node) > FUNCTION_LINES_MAX and not is_kernel:
                yield f"{node.name} exceeds {FUNCTION_LINES_MAX} lines"
            takes_effects = any(one.arg == "effects" for one in node.args.args)
            if in_core and takes_effects and "`effects`" not in (ast.get_docstring(node) or ""):
                yield f"{node.name} takes effects; it returns them, or its docstring says why not"
            if in_core and isinstance(node, ast.AsyncFunctionDef):
                yield f"{node.name} is async; the core runs to completion"
        case ast.ClassDef() if VAGUE.search(node.name):
            yield f"class {node.name}: name says nothing; name what it knows"
        case ast.For(iter=ast.Set() | ast.SetComp()) if in_core:
            yield "iterates a set; the order would depend on PYTHONHASHSEED"
        case ast.ExceptHandler(type=None):
            yield "bare except"


def test_no_file_breaks_the_house_rules() -> None:
    complaints = []
    for where, text, tree in files():
        if text.count("\n") > FILE_LINES_MAX:
            complaints.append(f"{where}: exceeds {FILE_LINES_MAX} lines; it needs a second noun")
        if VAGUE.search(where.stem):
            complaints.append(f"{where}: name says nothing; name what it knows")
        if where.parts[0] in CORE and text.strip() and not ast.get_docstring(tree):
            complaints.append(f"{where}: a core module opens with what it decides and its invariants")
        if BARE_SUPPRESSION.search(text):
            complaints.append(f"{where}: a suppression says why, in a comment behind it")
        complaints += [
            f"{where}:{getattr(node, 'lineno', 0)}: {why}" for node in ast.walk(tree) for why in objections(where, node)
        ]
    assert complaints == []


def is_stub(node: ast.FunctionDef) -> bool:
    """A protocol's: it says what there is, and does nothing."""
    return all(isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) for part in node.body)


def test_the_core_asserts_what_it_relies_on_and_what_it_leaves() -> None:
    """On average, so that nobody asserts what is plain: an assert says what a reader would have to find out."""
    core = [path for folder in CORE for path in (SOURCE / folder).rglob("*.py")]
    nodes = [node for path in core for node in ast.walk(ast.parse(path.read_text()))]
    functions = sum(isinstance(node, ast.FunctionDef) and not is_stub(node) for node in nodes)
    asserts = sum(isinstance(node, ast.Assert) for node in nodes)
    assert asserts >= ASSERTS_MIN * functions, f"{asserts} asserts in {functions} functions"


def test_the_architecture_page_names_every_folder_and_no_other() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert named == folders


def test_the_files_that_the_architecture_page_names_exist() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = re.findall(r"`(\w+/[\w/]+\.py)`", page)
    assert len(named) > 15
    assert [name for name in named if not ((SOURCE / name).exists() or (SPARK.parent / name).exists())] == []


def test_the_way_of_a_request_never_goes_back_to_a_file() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    ways = [part.partition("\n## ")[0] for part in page.split("\n## The way of one ")[1:]]
    assert len(ways) == 2
    for way in ways:
        named = re.findall(r"`(\w+/[\w/]+\.py)`", way)
        assert len(named) > 8
        assert [name for name in dict.fromkeys(named) if named.count(name) > 1] == []


def test_no_folder_has_more_files_than_one_can_overlook() -> None:
    for root in (SOURCE, SPARK, ROOT / "tests", ROOT / "spark" / "tests"):
        for folder in sorted({path.parent for path in root.rglob("*.py")}):
            files = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
            assert len(files) <= FOLDER_FILES_MAX, f"{folder.relative_to(ROOT)}: {len(files)} files side by side"
