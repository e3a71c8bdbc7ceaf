"""The page's own files: no build step, no other origin, and no way from data to HTML."""

import re
from collections.abc import Iterator

import pytest

from strandline.console.app import STATIC
from strandline.console.catalog import VIEWS
from strandline.console.facts import SOURCES, Facts
from strandline.console.view import View

LINES_MAX = 500
FILES_MAX = 15
TO_HTML = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc|ContextualFragment"
)
ELSEWHERE = re.compile(r"https?://(?!www\.w3\.org/2000/svg)|//cdn|@import")
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\brgb\(|\bhsl\(")


def files(*suffixes: str) -> Iterator[tuple[str, str]]:
    for path in sorted(STATIC.rglob("*")):
        if path.suffix in suffixes:
            yield str(path.relative_to(STATIC)), path.read_text()


def test_no_data_becomes_html_or_code() -> None:
    found = list(files(".js", ".html"))
    assert len(found) > 15
    assert [(name, match) for name, text in found for match in TO_HTML.findall(text)] == []


def test_the_page_loads_nothing_from_elsewhere() -> None:
    found = files(".js", ".html", ".css", ".svg")
    assert [(name, match) for name, text in found for match in ELSEWHERE.findall(text)] == []


def test_the_page_has_no_script_and_no_style_of_its_own_which_the_policy_would_forbid() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]* src=)|<style| style=| on\w+=", page) == []


def test_colours_are_named_in_one_file() -> None:
    others = [(name, text) for name, text in files(".css", ".js") if name != "style/tokens.css"]
    named = {name: COLOUR.findall(re.sub(r"url\([^)]*\)|[\"'`]#/?[^\"'`]*", "", text)) for name, text in others}
    assert {name: found for name, found in named.items() if found and found != ["rgb("]} == {}


def test_light_and_dark_have_the_same_tokens() -> None:
    _, light, dark = (STATIC / "style" / "tokens.css").read_text().split(":root")
    colours = {name for name, value in re.findall(r"--([\w-]+): (#\w+)", light)}
    assert colours == {name for name, _ in re.findall(r"--([\w-]+): (#\w+)", dark)}


def test_files_are_small_and_folders_too() -> None:
    assert [name for name, text in files(".js", ".css", ".html") if text.count("\n") > LINES_MAX] == []
    for folder in [STATIC, *(path for path in STATIC.rglob("*") if path.is_dir())]:
        assert len([path for path in folder.iterdir() if path.is_file()]) <= FILES_MAX, folder


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_has_its_module(view: View) -> None:
    text = (STATIC / "views" / f"{view.name}.js").read_text()
    assert "export function open(root" in text


def test_names_are_there_once() -> None:
    for kind in ("channels", "reads", "changes"):
        names = [getattr(one, "name", one) for view in VIEWS for one in getattr(view, kind)]
        assert len(names) == len(set(names)), kind
    assert len({view.name for view in VIEWS}) == len(VIEWS)


def test_every_channel_shows_what_is_known_before_anything_is() -> None:
    for channel in [channel for view in VIEWS for channel in view.channels]:
        assert isinstance(dict(channel.rows(Facts())), dict)
        assert set(channel.of) <= {source.name for source in SOURCES}


def test_every_import_of_a_module_leads_to_a_file() -> None:
    missing = []
    for name, text in files(".js"):
        for target in re.findall(r"from \"(\.[^\"]+)\"", text):
            if not (STATIC / name).parent.joinpath(target).resolve().is_file():
                missing.append((name, target))
    assert missing == []
