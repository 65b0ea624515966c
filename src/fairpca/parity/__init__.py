"""Demographic parity: projections in which the groups look alike.

`FairPCA` shares the loss among the groups; the estimators here make the projected groups alike in
their means, and if wanted in their covariances. Other differences remain, and a classifier can
use them.
`ParityPCA` gives all groups the same projected mean, and with ``match="covariance"`` similar
projected covariances too; `KernelParityPCA` does the former in the feature space of a kernel;
`ConvexParityPCA` trades both against the variance that is kept, in a semidefinite program.
"""

from fairpca.parity._convex import ConvexParityPCA
from fairpca.parity._kernel import KernelParityPCA
from fairpca.parity._pca import ParityPCA

__all__ = ["ConvexParityPCA", "KernelParityPCA", "ParityPCA"]
