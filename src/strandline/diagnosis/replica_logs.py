"""What replicas say of their logs, as JSON and in words."""

from typing import Any

from strandline.client.admin.replica_logs import LogReport, Unasked


def as_json(report: LogReport) -> dict[str, Any]:
    if isinstance(report, Unasked):
        return {"replica": report.replica, "error": report.why}
    return {
        "replica": report.replica,
        "last_epoch": report.last_epoch,
        "end_offset": report.end_offset,
        "high_watermark": report.high_watermark,
        "current_epoch": report.current_epoch,
        "log_start_offset": report.log_start_offset,
        "last_stable_offset": report.last_stable_offset,
        "recovered_uncleanly": report.recovered_uncleanly,
        "is_whole": report.is_whole,
        "damaged": report.damaged,
    }


def words(report: LogReport) -> str:
    if isinstance(report, Unasked):
        return f"broker {report.replica} {report.why}"
    last = f"last epoch {report.last_epoch}" if report.last_epoch >= 0 else "no records"
    whole = ", but it has all that it had written" if report.is_whole else ""
    unclean = f"; its last stop was unclean{whole}" if report.recovered_uncleanly else ""
    rot = "" if report.damaged is None else f"; offsets {report.damaged[0]} to {report.damaged[1] - 1} are damaged"
    much = f"end offset {report.end_offset}, {last}, high watermark {report.high_watermark}"
    return f"broker {report.replica}: {much}{unclean}{rot}"
