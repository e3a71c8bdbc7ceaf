"""Times and durations as kafka-consumer-groups has them."""

import re
from datetime import UTC, datetime, timedelta

from strandline.client.errors import BadOption

DURATION = re.compile(r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)
LONGEST = timedelta(days=36_500)  # much longer ones end before the calendar begins
SHOWN_MAX = 40  # letters


def parsed_time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadOption(f"'{text}' is not a time such as 2026-01-31T12:00:00.000") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def parsed_duration(text: str) -> timedelta:
    found = DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:]):
        raise BadOption(f"'{text}' is not a duration such as P1D or PT1H30M")
    sign, days, hours, minutes, seconds = found.groups()
    try:
        span = timedelta(
            days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0), seconds=float(seconds or 0)
        )
    except (OverflowError, ValueError):
        span = timedelta.max
    if span > LONGEST:
        raise BadOption(f"'{text[:SHOWN_MAX]}' is longer than {LONGEST.days} days")
    return -span if sign else span


def to_ms(time: datetime) -> int:
    return max((time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1), 0)
