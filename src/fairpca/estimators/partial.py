"""partial_fit: a fit to rows that come in batches."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from fairpca.estimators.gather import Gathered
from fairpca.exceptions import FairnessWarning
from fairpca.moments import GroupMoments


@dataclass(frozen=True, eq=False)
class Taken:
    """What `partial_fit` has taken in: moments, and whether they are by sensitive features."""

    moments: GroupMoments
    grouped: bool


class PartialFit:
    """`partial_fit` for `FairPCA`."""

    # Without this, metadata routing would ask every user to request it, as for fit.
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Take in some more rows and find the fair subspace of all rows so far.

        After any batches the subspace is that of `fit` on all of their rows: what is kept between
        calls are their moments, which add exactly. New groups may turn up at any time. Each call
        finds the subspace anew; where only the last one matters, add `GroupMoments` and call
        `fit_moments` once. `fit` and `fit_moments` start anew and keep no moments (they would
        make every pickle larger), so `partial_fit` after one of them starts anew too, and warns.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Numeric and without missing values. Of a first row alone there is no subspace yet: the
            estimator is fitted from the second one on.
        y : ignored
        sensitive_features : array-like of shape (n_samples,) or (n_samples, m), default=None
            The group of each row; several columns make groups of their intersections. All calls
            give them, or none.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows.

        Returns
        -------
        self : FairPCA

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import FairPCA
        >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
        >>> groups = np.repeat(["a", "b", "c"], 100)
        >>> fair = FairPCA(2)
        >>> for batch in np.split(np.random.default_rng(1).permutation(300), 3):
        ...     fair = fair.partial_fit(X[batch], sensitive_features=groups[batch])
        >>> fair.group_table_.count.tolist()
        [100, 100, 100]
        """
        estimator: Any = self  # with the methods of FairPCA
        solver = estimator._check_parameters()
        before: Taken | None = getattr(self, "_taken", None)
        if before is None and hasattr(self, "components_"):
            warnings.warn(
                "partial_fit starts anew: fit and fit_moments keep no moments that it could add "
                "to. To go on from other rows, add their GroupMoments and call fit_moments.",
                FairnessWarning,
                stacklevel=2,
            )
        grouped = sensitive_features is not None
        if before is not None and before.grouped != grouped:
            raise ValueError(
                "sensitive_features must be given in all calls of partial_fit or in none, and "
                f"earlier calls had {'none' if grouped else 'them'}."
            )
        moments = estimator._gather(
            X, sensitive_features, sample_weight, reset=before is None, least_rows=1
        ).moments
        if before is not None:
            moments = before.moments + moments
        taken = Taken(moments, grouped)
        if moments.count.sum() >= 2:
            estimator._finish(Gathered(moments), solver, grouped=grouped, taken=taken)
        else:
            self._taken = taken
        return self
