"""What `from strandline.pipeline import …` gives: functions and classes, whatever else was imported before."""

from importlib import import_module

import pytest

import strandline.pipeline
from strandline.pipeline import FACES


@pytest.mark.parametrize("name", FACES)
def test_a_face_is_no_module_even_where_one_has_its_name(name: str) -> None:
    for _ in range(2):
        assert getattr(strandline.pipeline, name) is getattr(import_module(FACES[name]), name)
    assert callable(getattr(strandline.pipeline, name))


def test_other_names_are_modules_or_errors() -> None:
    from strandline.pipeline import java

    assert java.__name__ == "strandline.pipeline.java"
    assert dir(strandline.pipeline) == sorted(FACES)
    with pytest.raises(AttributeError, match="has no 'nothing': it has "):
        strandline.pipeline.nothing  # noqa: B018
