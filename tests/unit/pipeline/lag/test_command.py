"""What the command makes of its flags."""

import pytest

from strandline.cli.pipeline.lag import named_queries


def test_checkpoints_are_called_by_their_folders_and_by_whole_paths_where_those_are_the_same() -> None:
    one, other = "/data/a/_strandline/checkpoint", "/data/b/_strandline/checkpoint"
    assert named_queries([one, other, "/etl"]) == {one: one, other: other, "etl": "/etl"}
    assert named_queries([one, f"b={other}"]) == {"checkpoint": one, "b": other}


def test_a_folder_may_have_an_equals_sign() -> None:
    assert named_queries(["/data/day=1/etl", "x=/data/day=2/etl"]) == {"etl": "/data/day=1/etl", "x": "/data/day=2/etl"}


def test_one_name_for_two_checkpoints_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        named_queries(["a=/one", "a=/two"])
    assert "--query names two checkpoints a" in capsys.readouterr().err
