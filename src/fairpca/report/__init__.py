"""report: who pays for PCA, what fairness costs and how surely, as one page for everyone."""

from fairpca.report._report import N_POINTS, Report, import_jinja2, report

__all__ = ["N_POINTS", "Report", "import_jinja2", "report"]
