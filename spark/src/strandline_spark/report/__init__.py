"""Reports as one HTML page that needs nothing but a browser: no network, no script, light and dark.

Every function here returns markup, in which all that was given is escaped; `page` puts it together and `write_page`
puts it into a file.
"""

from strandline_spark.report.page import Verdict, page, section, write_page
from strandline_spark.report.plots import Series, Span, bars, lines, spans, stacked, steps
from strandline_spark.report.tables import number, table

__all__ = [
    "Series",
    "Span",
    "Verdict",
    "bars",
    "lines",
    "number",
    "page",
    "section",
    "spans",
    "stacked",
    "steps",
    "table",
    "write_page",
]
