"""Where commands get passwords: a prompt, a file, or the standard input; and a warning where others may read them."""

import sys
from getpass import getpass
from pathlib import Path
from stat import S_IRWXG, S_IRWXO

from strandline.cli.connect import fail, misuse


def password_for(user: str, file: Path | None) -> str:
    """From the file's first line; without a file, asked for twice at a terminal, or the first line of the input."""
    if file is not None:
        text = from_file(file)
    elif sys.stdin.isatty():
        text = getpass(f"Password of {user}: ")
        if getpass("The same again: ") != text:
            fail("the two passwords differ", "repeat the command, or name a file with --password-file")
    else:
        text = sys.stdin.readline().rstrip("\r\n")
    if not text:
        fail(f"no password for {user}", "type one, or name a file that has it with --password-file", status=2)
    return text


def from_file(path: Path) -> str:
    try:
        text = path.read_text()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        misuse(f"{path} cannot be read: {why}", "its first line is the password")
    if mode & (S_IRWXG | S_IRWXO):
        warn(f"other users of this machine may read {path}: chmod 600 {path}")
    return (text.splitlines() or [""])[0]


def warn_of_command_line() -> None:
    warn(
        "a password on the command line is visible to other users of this machine, and stays in the shell's history."
        " `strandline users add` asks for it"
    )


def warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)
