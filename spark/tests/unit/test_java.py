"""The script that starts Java: which class archive a JVM uses, and which JVM writes one."""

import os
import subprocess
import time
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from strandline_spark import java

# Does what the options say to files, and notes its arguments.
FAKE = """\
#!/bin/sh
echo "$@" >> "$CALLS"
for argument do case $argument in
    -Xshare:dump) dumps=yes ;;
    -Xshare:on) exit "$INVALID" ;;
    -XX:SharedArchiveFile=*) [ -z "$dumps" ] || exec cp "$0" "${argument#*=}" ;;
    -XX:ArchiveClassesAtExit=*) echo classes > "${argument#*=}" ;;
esac; done
exit 7
"""
SUBMIT = "org.apache.spark.deploy.SparkSubmit"


class Started:
    """A packaged Java and a Spark that only note how they are started."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = folder / "calls"
        self.spark = folder / "it's spark"
        (self.spark / "jars").mkdir(parents=True)
        for name in ("b.jar", "slf4j-api-2.jar", "a.jar"):
            (self.spark / "jars" / name).touch()
        (folder / "real java").write_text(FAKE)
        (folder / "real java").chmod(0o755)
        spec = ModuleSpec("pyspark", None, origin=str(self.spark / "__init__.py"))
        monkeypatch.setattr(java, "find_spec", lambda name: spec)
        self.home = java.written(folder / "cache" / "java-1", java.start_script(folder / "real java"))
        jars = f"{self.spark}/jars"
        self.given = f"{self.spark}/conf:{jars}/slf4j-api-2.jar:{jars}/*"
        self.listed = f"{jars}/slf4j-api-2.jar:{jars}/a.jar:{jars}/b.jar"

    def start(self, *arguments: str, paths: str = "", **environment: str) -> list[str]:
        """The calls of Java for one start, without the option that is always there. Each start keeps its status."""
        self.calls.unlink(missing_ok=True)
        command = [str(self.home / "bin" / "java"), "-cp", paths or self.given, *arguments]
        settings = {**os.environ, "CALLS": str(self.calls), "INVALID": "0", **environment}
        settings.setdefault("STRANDLINE_CLASS_ARCHIVE", "")
        assert subprocess.run(command, env=settings, check=False).returncode == 7
        return self.calls.read_text().replace(" -Xlog:cds*=off", "").splitlines()

    def files(self) -> set[str]:
        return {path.name for path in self.home.iterdir()} - {"bin"}


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    monkeypatch.delenv("STRANDLINE_CLASS_ARCHIVE", raising=False)
    return Started(tmp_path, monkeypatch)


def test_the_first_start_of_spark_writes_the_archive_and_the_next_ones_use_it(started: Started) -> None:
    assert started.start("-Xmx1g", "launcher") == [f"-cp {started.listed} -Xmx1g launcher"]
    dump, run, check = started.start(SUBMIT, "two words")
    home = started.home
    assert dump.startswith(f"-Xshare:dump -XX:SharedArchiveFile={home}/jdk.jsa.")
    assert run.startswith(f"-XX:SharedArchiveFile={home}/jdk.jsa -XX:ArchiveClassesAtExit={home}/spark.jsa.")
    assert run.endswith(f" -cp {started.listed} {SUBMIT} two words")
    assert check.startswith(f"-Xshare:on -XX:SharedArchiveFile={home}/jdk.jsa:{home}/spark.jsa.")
    assert started.files() == {"jdk.jsa", "spark.jsa"}
    both = f"-XX:SharedArchiveFile={home}/jdk.jsa:{home}/spark.jsa"
    assert started.start(SUBMIT) == [f"{both} -cp {started.listed} {SUBMIT}"]
    assert started.start("executor") == [f"{both} -cp {started.listed} executor"]
    assert started.start("x", paths="other.jar") == [f"-XX:SharedArchiveFile={home}/jdk.jsa -cp other.jar x"]


def test_an_archive_that_java_rejects_is_not_kept(started: Started) -> None:
    assert len(started.start(SUBMIT, INVALID="1")) == 3
    assert started.files() == {"jdk.jsa"}


def test_one_jvm_at_a_time_writes_and_none_that_is_told_only_to_read(started: Started) -> None:
    plain = [f"-cp {started.listed} {SUBMIT}"]
    assert started.start(SUBMIT, STRANDLINE_CLASS_ARCHIVE="read") == plain
    (started.home / "lock").symlink_to(str(os.getpid()))
    assert started.start(SUBMIT) == plain
    (started.home / "lock").unlink()
    gone = subprocess.Popen(["true"])
    gone.wait()
    (started.home / "lock").symlink_to(str(gone.pid))
    (started.home / "spark.jsa.99").touch()  # as far as that one came
    assert len(started.start(SUBMIT)) == 3
    assert started.files() == {"jdk.jsa", "spark.jsa"}


def test_a_class_path_with_more_than_spark_has_no_archive(started: Started) -> None:
    given = f"mine.jar:{started.given}"
    assert started.start(SUBMIT, paths=given) == [f"-cp {given} {SUBMIT}"]
    (started.spark / "conf").mkdir()
    assert started.start(SUBMIT) == [f"-cp {started.given} {SUBMIT}"]


def test_another_jar_is_another_script_and_unused_archives_are_deleted(started: Started, tmp_path: Path) -> None:
    before = java.start_script(tmp_path / "real java")
    (started.spark / "jars" / "a.jar").write_text("newer")
    assert java.start_script(tmp_path / "real java") != before
    started.start(SUBMIT)
    ages = {"java-1": 31, "java-2": 29}
    for name, days in ages.items():
        (started.home.parent / name).mkdir(exist_ok=True)
        for file in ("spark.jsa", "jdk.jsa"):
            (started.home.parent / name / file).touch()
        at = time.time() - days * 86_400
        os.utime(started.home.parent / name / "spark.jsa", (at, at))
    java.written(started.home.parent / "java-3", "script")
    assert {str(path.relative_to(started.home.parent)) for path in started.home.parent.glob("*/*.jsa")} == {
        "java-2/spark.jsa",
        "java-2/jdk.jsa",
    }
