"""report: one self-contained page for the public, and one with the comparison with real rows.

Reads: reports, data/models/loss.csv. Writes: reports/index.html, reports/metrics.json, reports/figures, and
reports/internal/index.html (NOT private). Spends: nothing.
"""

from likeness.pipeline.project import Project
from likeness.report.pages import write_report


def main(project: Project) -> None:
    """Render from files."""
    write_report(project.root)
