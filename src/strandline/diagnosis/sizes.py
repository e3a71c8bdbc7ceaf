"""Sizes for people."""

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def readable(size_bytes: int) -> str:
    """ "12.3 GiB"; empty where it is not known."""
    if size_bytes < 0:
        return ""
    size = float(size_bytes)
    for unit in UNITS:
        if size < 1024 or unit == UNITS[-1]:
            break
        size /= 1024
    return f"{size_bytes} B" if unit == "B" else f"{size:.1f} {unit}"
