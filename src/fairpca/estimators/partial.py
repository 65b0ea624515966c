"""Fits to rows that are summed up already, or that come in batches."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from fairpca._rows.labels import UNGROUPED
from fairpca.estimators.gather import Gathered
from fairpca.exceptions import warn_user
from fairpca.moments import GroupMoments


@dataclass(frozen=True, eq=False)
class Taken:
    """What `partial_fit` has taken in: moments, and whether they are by sensitive features."""

    moments: GroupMoments
    grouped: bool


class MomentsFit:
    """`fit_moments`, `fit_gathered` and `partial_fit` for `FairPCA`."""

    # Without this, metadata routing would ask every user to request it, as for fit.
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    def fit_moments(self, moments: GroupMoments) -> Self:
        """Find the fair subspace of rows of which only the moments are at hand.

        The result is that of `fit` on those rows: `GroupMoments` are all that it keeps of them.
        They come from parts of the data, files (`fairpca.sources`) or other places.

        Parameters
        ----------
        moments : GroupMoments
            Of at least two rows. Their `feature_names`, if any, become `feature_names_in_`.

        Returns
        -------
        self : FairPCA

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import FairPCA, GroupMoments
        >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
        >>> groups = np.repeat(["a", "b"], 150)
        >>> halves = (GroupMoments.from_rows(X[i::2], groups[i::2]) for i in range(2))
        >>> fair = FairPCA(2).fit_moments(GroupMoments.merge(halves))
        >>> fair.group_table_.count.tolist()
        [150, 150]
        """
        if not isinstance(moments, GroupMoments):
            raise TypeError(
                f"fit_moments takes GroupMoments, not a {type(moments).__name__}: use fit for rows."
            )
        return self.fit_gathered(Gathered.from_moments(moments))

    def fit_gathered(self, gathered: Gathered) -> Self:
        """Find the fair subspace of rows that `gather` has checked and summed up already.

        For those who gather once and fit several times; `fit` and `fit_moments` are for the rest.

        Parameters
        ----------
        gathered : Gathered
            What it returned.

        Returns
        -------
        self : FairPCA
        """
        estimator: Any = self  # with the methods of FairPCA
        grouped = gathered.moments.labels != UNGROUPED
        gathered = gathered.grouped(estimator.groups)
        solver = estimator._check_gathered(gathered)
        estimator._finish(gathered, solver, grouped=grouped)
        return self

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
        sensitive_features : str, list of str or array-like of shape (n_samples,) or (n_samples, m)
            As for `fit`. All calls give them, or none.
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
            warn_user(
                "partial_fit starts anew: fit and fit_moments keep no moments that it could add "
                "to. To go on from other rows, add their GroupMoments and call fit_moments."
            )
        grouped = sensitive_features is not None
        if before is not None and before.grouped != grouped:
            raise ValueError(
                "sensitive_features must be given in all calls of partial_fit or in none, and "
                f"earlier calls had {'none' if grouped else 'them'}."
            )
        # Intersections, of which any groups can be made, also after other batches.
        options = {"groups": None if estimator.groups is None else "intersections"}
        # Moments without folds cannot be added to others that have them, nor they to these.
        folds = estimator._needs_folds(grouped) if before is None else before.moments.has_folds
        options["folds"] = "all" if folds else None
        gathered = estimator._gather(
            X, sensitive_features, sample_weight, reset=before is None, least_rows=1, **options
        )
        moments = gathered.moments if gathered.cells is None else gathered.cells
        if before is not None:
            moments = before.moments + moments
        taken = Taken(moments, grouped)
        if moments.n_rows >= 2:
            gathered = Gathered.from_moments(moments, estimator.groups)
            first = before is None or before.moments.n_rows < 2
            estimator._finish(gathered, solver, grouped=grouped, y=y, taken=taken, first=first)
        else:
            self._taken = taken
        return self
