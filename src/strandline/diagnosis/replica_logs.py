"""What replicas say of their logs, as JSON and in words."""

from typing import Any

from strandline.client.admin.replica_logs import Told, Unasked


def as_json(told: Told) -> dict[str, Any]:
    if isinstance(told, Unasked):
        return {"replica": told.replica, "error": told.why}
    return {
        "replica": told.replica,
        "last_epoch": told.last_epoch,
        "end_offset": told.end_offset,
        "high_watermark": told.high_watermark,
        "current_epoch": told.current_epoch,
        "log_start_offset": told.log_start_offset,
        "last_stable_offset": told.last_stable_offset,
        "recovered_uncleanly": told.recovered_uncleanly,
        "is_whole": told.is_whole,
        "damaged": told.damaged,
    }


def words(told: Told) -> str:
    if isinstance(told, Unasked):
        return f"broker {told.replica} {told.why}"
    last = f"last epoch {told.last_epoch}" if told.last_epoch >= 0 else "no records"
    whole = ", but it has all that it had written" if told.is_whole else ""
    unclean = f"; its last stop was unclean{whole}" if told.recovered_uncleanly else ""
    rot = "" if told.damaged is None else f"; offsets {told.damaged[0]} to {told.damaged[1] - 1} are damaged"
    much = f"end offset {told.end_offset}, {last}, high watermark {told.high_watermark}"
    return f"broker {told.replica}: {much}{unclean}{rot}"
