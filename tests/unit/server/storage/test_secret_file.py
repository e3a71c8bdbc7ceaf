"""The file with the cluster's secret: who may own it, and who may read it."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.rows import each

from strandline.base.ports import DiskError
from strandline.server.storage import secret_file
from strandline.server.storage.secret_file import new_secret, read_secret, write_secret

ME, OTHER = 1000, 1001


@each(
    ("owner", "mode", "problem"),
    [
        (ME, 0o600, ""),
        (0, 0o400, ""),
        (OTHER, 0o600, "belongs to another user (uid 1001)"),
        (ME, 0o640, "others may read it (mode 640)"),
        (0, 0o604, "others may read it (mode 604)"),
    ],
)
def test_the_secret_is_for_its_owner_alone_and_that_is_this_user_or_root(
    tmp_path: Path, owner: int, mode: int, problem: str
) -> None:
    path, secret = str(tmp_path / "secret"), new_secret()
    write_secret(path, secret)
    status = SimpleNamespace(st_mode=0o100000 | mode, st_uid=owner)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(secret_file.os, "geteuid", lambda: ME)
        patched.setattr(secret_file.os, "fstat", lambda fd: status)
        if not problem:
            assert read_secret(path) == secret
            return
        with pytest.raises(DiskError) as raised:
            read_secret(path)
    assert problem in str(raised.value)
    assert secret.text not in str(raised.value)
