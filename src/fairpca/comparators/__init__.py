"""Estimators to compare with: projections of demographic parity, and VR-PCA.

`ParityPCA`, `KernelParityPCA` and `ConvexParityPCA` make the projected groups look alike, which is
another notion of fairness than that of `FairPCA`. `VRPCA` is ordinary PCA by stochastic gradients.
Published solvers of fair PCA itself are in `fairpca.solvers`.
"""

from fairpca.comparators.parity import ConvexParityPCA, KernelParityPCA, ParityPCA
from fairpca.comparators.vrpca import VRPCA

__all__ = ["VRPCA", "ConvexParityPCA", "KernelParityPCA", "ParityPCA"]
