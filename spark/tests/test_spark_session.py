"""The session helper: which Java, which settings, and that workers run what the driver runs."""

import io
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from strandline_spark import java
from strandline_spark.cli.options import spark_session
from strandline_spark.errors import StrandlineError, sentence_of
from strandline_spark.spark import is_submitted, session


def test_a_running_session_is_taken_as_it_is(spark: SparkSession) -> None:
    # Not `is spark`: a micro-batch that ran here before leaves its clone of the session as PySpark's active one.
    assert session("local[7]").sparkContext is spark.sparkContext


def test_a_command_in_another_thread_leaves_a_session_that_runs(spark: SparkSession) -> None:
    def command() -> bool:
        with spark_session("local[7]", (), "other") as taken:
            return taken.sparkContext is spark.sparkContext

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(command).result()
    assert spark.range(3).count() == 3


def test_workers_run_this_python_and_times_are_in_utc(spark: SparkSession) -> None:
    executables = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert executables == [sys.executable]
    preloaded = (
        spark.sparkContext.parallelize([0], 1).map(lambda _: "strandline_spark.workers" in sys.orig_argv).collect()
    )
    assert preloaded == [True]
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"


def test_the_packaged_java_starts_and_ignores_the_module_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = java.packaged_java()
    assert home.is_relative_to(tmp_path)
    command = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Dname=two words", "-version"]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "21." in process.stderr
    assert java.packaged_java() == home


def test_java_home_wins_over_the_packaged_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/some/java")
    java.choose_java()
    assert os.environ["JAVA_HOME"] == "/some/java"


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert java.packaged_java().is_relative_to(tmp_path / f"strandline-{os.getuid()}")


def test_a_user_without_a_home_has_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", homeless)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert java.packaged_java().is_relative_to(tmp_path / f"strandline-{os.getuid()}")


def test_what_somebody_else_may_change_is_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "theirs").mkdir()
    (tmp_path / f"strandline-{os.getuid()}").symlink_to(tmp_path / "theirs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(StrandlineError, match="no folder is writable"):
        java.packaged_java()


def test_what_spark_submit_or_its_arguments_say_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    assert not is_submitted()
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master spark://host:7077 pyspark-shell")
    assert is_submitted()
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert is_submitted()


def test_our_own_words_are_found_in_sparks_traceback() -> None:
    wrapped = RuntimeError(
        "[PYTHON_DATA_SOURCE_ERROR] …\nTraceback …\nstrandline_spark.errors.BadOption: no topic\n  name one\n\tat x"
    )
    sentence = sentence_of(wrapped)
    assert (sentence.problem, sentence.advice) == ("no topic", "name one")
    assert str(StrandlineError("a", "b")) == "a\n  b"
    assert sentence_of(ValueError("first\nsecond")).problem == "first"
    java = "An error occurred while calling o49.load.\n: org.apache.spark.SomeException: [NOT_FOUND] Failed\n\tat x"
    assert sentence_of(ValueError(java)).problem == "[NOT_FOUND] Failed"


def test_a_disk_that_refuses_ends_a_command_with_a_sentence(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as ended, spark_session(None, (), "test"):
        (tmp_path / "file" / "table").mkdir()
    assert ended.value.code == 1
    assert f"error: {tmp_path}/file/table: Not a directory\n  check that" in capsys.readouterr().err


def test_wrong_sql_ends_a_command_with_a_sentence_and_no_pages_of_json(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    PySparkLogger.getLogger("SQLQueryContextLogger").addHandler(handler)
    with pytest.raises(SystemExit), spark_session(None, (), "test"):
        spark.sql("SELECT nothing")
    assert "`nothing` cannot be resolved" in capsys.readouterr().err
    assert said.getvalue() == ""
