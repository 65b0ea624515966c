"""Estimators to compare with: demographic parity and equal opportunity.

`ParityPCA` makes the projected groups look alike, which is another notion of fairness than that of
`FairPCA`. `EqualOpportunityProjection` does so for the positives alone, and any reduction can
follow. Published solvers of fair PCA itself are in `fairpca.solvers`.
"""

from fairpca.comparators.opportunity import EqualOpportunityProjection
from fairpca.comparators.parity import ParityPCA

__all__ = ["EqualOpportunityProjection", "ParityPCA"]
