"""Many cheap rows as one test, where `pytest.mark.parametrize` would make an item of each."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

SHOWN_MAX = 10  # failing rows, each with its traceback


def each(
    names: str | tuple[str, ...], rows: Iterable[Any], *, ids: Any = None, **fresh: Callable[[], Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`pytest.mark.parametrize` in one item: it runs every row, and then fails with the name of each that failed.

    A fixture is shared by the rows. What each needs anew is given here: `world=World`. A `tmp_path` is each row's own.
    """
    bound = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [values_and_id(row, len(bound), ids, at) for at, row in enumerate(rows)]
    assert table, f"no rows for {names}"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            failed: list[Exception] = []
            for at, (values, name) in enumerate(table):
                own = {key: make() for key, make in fresh.items()}
                if "tmp_path" in fixtures:
                    own["tmp_path"] = fixtures["tmp_path"] / str(at)
                    own["tmp_path"].mkdir()
                try:
                    test(**{**fixtures, **dict(zip(bound, values, strict=True)), **own})
                except BaseException as error:
                    error.add_note(f"in the row [{name}]")
                    if not isinstance(error, Exception):
                        raise  # an interrupt, a timeout, a skip
                    failed.append(error)
                if len(failed) == SHOWN_MAX:
                    break
            if failed:
                reported = " ".join(error.__notes__[-1].removeprefix("in the row ") for error in failed)
                raise ExceptionGroup(f"rows of {len(table)} that fail: {reported}", failed)

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in bound and name not in fresh]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def values_and_id(row: Any, width: int, ids: Any, at: int) -> tuple[tuple[Any, ...], str]:
    given = getattr(row, "id", None) if type(row) is type(pytest.param()) else None
    values = tuple(row.values) if type(row) is type(pytest.param()) else (row,) if width == 1 else tuple(row)
    if given is None and callable(ids):
        given = "-".join(str(ids(value)) for value in values)
    elif given is None and ids is not None:
        given = str(list(ids)[at])
    return values, given or "-".join(str(getattr(value, "__name__", value)) for value in values)
