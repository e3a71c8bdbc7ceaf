"""Pages of the documentation's site that do not lie in docs/: a hook of mkdocs, named in mkdocs.yml.

The pages in the repository's root keep their places and their links, which work where the repository is read. Here they
become pages of the site. And the reference is a page for each public package, made from docstrings.
"""

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
OF_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
REFERENCE = {
    "strandline.client": "A Kafka client without callbacks: what commands, demonstrations, tests and Spark jobs use.",
    "strandline.testing": "Clusters of node processes on this machine, and faults.",
    "strandline.history": "What clients did and saw, and the anomalies in it, by Jepsen's names.",
    "strandline_spark": "Topics and replicas in Spark, and the jobs made of them.",
}
OPTIONS = """
    options:
      show_submodules: true
      show_root_heading: true
"""
LINK = re.compile(r"\]\((?P<target>[^)#:]+)(?P<anchor>#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in OF_ROOT.items():
        text = LINK.sub(link, (ROOT / source).read_text())
        files.append(File.generated(config, page, content=text))
    files.append(
        File.generated(config, "LICENSE.md", content=f"# License\n\n```\n{(ROOT / 'LICENSE').read_text()}```\n")
    )
    for package, what in REFERENCE.items():
        listed = "\n".join(f"::: {name}{OPTIONS}" for name in public(package))
        files.append(File.generated(config, f"reference/{package}.md", content=f"# {package}\n\n{what}\n\n{listed}"))
    return files


def public(package: str) -> list[str]:
    """What a user imports: all modules, or the names that strandline_spark lists, which need Spark to be imported."""
    if package != "strandline_spark":
        return [package]
    tree = ast.parse((ROOT / "spark/src/strandline_spark/__init__.py").read_text())
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    (faces,) = (node.value for node in assigned if ast.unparse(node.targets[0]) == "FACES")
    return [f"{module}.{name}" for name, module in ast.literal_eval(faces).items()]


def link(found: re.Match[str]) -> str:
    """From a page in the root to one of the site."""
    target = found["target"].removeprefix("docs/")
    page = OF_ROOT.get(target, "LICENSE.md" if target == "LICENSE" else target)
    return f"]({page}{found['anchor'] or ''})"
