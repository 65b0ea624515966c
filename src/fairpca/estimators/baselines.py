"""Baselines: the subspaces of the rows that a model was fitted to, for judging it by others."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.types import Array
from fairpca._rows.text import label_text
from fairpca.problem import Problem

_MOST_BYTES = 2**24
"""Baselines that take more memory are not kept."""


@dataclass(frozen=True, eq=False)
class Baselines:
    """Each training group's own best subspace and that of ordinary PCA; set by `FairPCA`.

    ``audit(model, X_new, baseline="training", …)`` measures new rows against them.

    Attributes
    ----------
    labels : tuple of length k
        The training groups.
    count : integer array of shape (k,)
        Their training rows.
    own_bases : array of shape (k, d, r)
        Each group's own best subspace, about the mean of all training rows.
    pca_basis : array of shape (d, r)
        That of ordinary PCA on all training rows.
    mean : array of shape (d,)
        Mean of all training rows.
    """

    labels: tuple[Hashable, ...]
    count: NDArray[np.int64]
    own_bases: Array
    pca_basis: Array
    mean: Array

    @classmethod
    def of_problem(cls, problem: Problem) -> Baselines | None:
        """Those of a problem that has been solved, which costs nothing; None if they are large.

        Losses of new rows are measured from the mean of all rows: with other centres the subspaces
        are found anew.
        """
        moments = problem.moments
        size = problem.n_groups * moments.n_features * problem.n_components
        if size * 8 > _MOST_BYTES:
            return None
        if problem.centering != "global":
            problem = replace(problem, centering="global", own_bases=None)
        return cls(
            labels=moments.labels,
            count=moments.count,
            own_bases=np.stack(problem.own_subspaces),
            pca_basis=np.ascontiguousarray(problem.pca_basis),
            mean=moments.total_mean,
        )

    @property
    def n_components(self) -> int:
        """Dimension of the subspaces."""
        return int(self.pca_basis.shape[1])

    @property
    def nbytes(self) -> int:
        """What the subspaces take in memory, and in a file."""
        return self.own_bases.nbytes + self.pca_basis.nbytes

    def position(self, label: Hashable) -> int | None:
        """Which of the training groups this is, by its label or as it is shown; None for none."""
        if label in self.labels:
            return self.labels.index(label)
        texts = [label_text(known) for known in self.labels]
        shown = label_text(label)
        return texts.index(shown) if texts.count(shown) == 1 else None


def baselines_of(estimator: Any) -> Baselines:
    """What a fitted model has kept of its training rows; ValueError if that is nothing."""
    name, instead = type(estimator).__name__, "use baseline='rows'"
    if not hasattr(estimator, "baselines_"):
        raise ValueError(
            f"baseline='training' needs each training group's own subspace, which {name} does not "
            f"keep: fit a FairPCA to the training rows and audit that, or {instead}."
        )
    found: Baselines | None = estimator.baselines_
    if found is None:
        raise ValueError(
            f"baseline='training' needs each training group's own subspace, which this {name} has "
            "not kept: its file was written without them (see save_model), or it was fitted to far "
            f"more columns than rows, or they would take more than {_MOST_BYTES >> 20} MB; "
            f"{instead}."
        )
    return found
