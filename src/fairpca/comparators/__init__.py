"""Estimators to compare with: demographic parity, equal opportunity, and VR-PCA.

`ParityPCA` makes the projected groups look alike, which is another notion of fairness than that of
`FairPCA`. `EqualOpportunityProjection` does so for the
positives alone, and any reduction can follow. `VRPCA` is ordinary PCA by stochastic gradients.
Published solvers of fair PCA itself are in `fairpca.solvers`.
"""

from fairpca.comparators.opportunity import EqualOpportunityProjection
from fairpca.comparators.parity import ParityPCA
from fairpca.comparators.vrpca import VRPCA

__all__ = [
    "VRPCA",
    "EqualOpportunityProjection",
    "ParityPCA",
]
