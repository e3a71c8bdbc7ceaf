"""Segments roll and go as their topics' retention says, on every replica alone."""

from strandline.base.effects import Effect
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.replica.hosting.host import Host
from strandline.replica.serving.fetching import Fetching


def retain(host: Host, fetching: Fetching, now: Instant) -> list[Effect]:
    for hosted in host.partitions.all():
        if hosted.role is None:
            continue
        before = hosted.log.log_start_offset
        try:
            hosted.log.roll_if_due(now)
            hosted.log.delete_old_segments(now, hosted.high_watermark)
        except DiskError as error:
            host.fail(hosted.directory, error)
            continue
        assert before <= hosted.log.log_start_offset <= hosted.high_watermark, hosted.name
        if hosted.log.log_start_offset != before:
            fetching.log_start_moved(hosted, now)
    return []
