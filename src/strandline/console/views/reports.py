"""Reports of the simulator and of audits. The page opens their files by itself: nothing is sent to the console."""

from strandline.console.view import View

REPORTS = View("reports", "Reports")
