"""Demographic parity: projections from which the group of a row cannot be told.

`FairPCA` shares the loss among the groups; the estimators here hide the group instead.
`ParityPCA` gives all groups the same projected mean, and with ``match="covariance"`` similar
projected covariances too; `KernelParityPCA` does the former in the feature space of a kernel;
`ConvexParityPCA` trades both against the variance that is kept, in a semidefinite program.
"""

from fairpca.parity._convex import ConvexParityPCA
from fairpca.parity._kernel import KernelParityPCA
from fairpca.parity._pca import ParityPCA

__all__ = ["ConvexParityPCA", "KernelParityPCA", "ParityPCA"]
