"""What the two estimators that project the rows themselves have in common."""

from abc import abstractmethod
from typing import Any, Self

from numpy.typing import ArrayLike

from fairpca._linalg.types import Array
from fairpca.base import LinearReduction, principal_axes
from fairpca.data import warn_of_no_groups
from fairpca.generalization.cautions import warn_of_groups
from fairpca.moments import GroupMoments
from fairpca.parity._spaces import check_dimensions_left, numerical_rank, parity_gaps
from fairpca.validation import check_choice, check_whole_number

ORDINARY_PCA = "use scikit-learn's PCA if ordinary PCA is wanted"
"""What to do instead of a fit without groups."""


class LinearParity(LinearReduction):
    """A reduction that a subclass finds from the moments alone, and what is left of the groups."""

    mean_gap_: float
    covariance_gap_: float

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the subspace.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight : as for `FairPCA.fit`
            Rows are in memory.

        Returns
        -------
        self : object
        """
        check_whole_number("n_components", self.n_components, optional=True)
        check_choice("whiten", self.whiten, (True, False))
        grouped = sensitive_features is not None
        self._check_parameters(grouped=grouped)
        moments = self._prepare(X, sensitive_features, sample_weight).moments
        if grouped:
            warn_of_groups(moments)
        else:
            warn_of_no_groups(y, ORDINARY_PCA)
        covariance = moments.total_covariance()
        basis = self._find_basis(moments, covariance)
        self._set_axes(principal_axes(basis, moments, covariance))
        self.mean_gap_, self.covariance_gap_ = parity_gaps(moments, basis)
        if not grouped:  # nothing is known of any group
            self.mean_gap_ = self.covariance_gap_ = float("nan")
        return self

    @abstractmethod
    def _check_parameters(self, *, grouped: bool) -> None:
        """Refuse wrong parameters before any work."""

    @abstractmethod
    def _find_basis(self, moments: GroupMoments, covariance: Array) -> Array:
        """Orthonormal columns that span the subspace; `covariance` is that of all rows."""

    def _dimension_in(self, space: Array, moments: GroupMoments, covariance: Array) -> int:
        """The number of components: as asked for, or as many as the space has variance for."""
        whole, left = space.shape
        least = 1 if self.n_components is None else int(self.n_components)
        check_dimensions_left(least, left, whole, f"there are {whole} columns", len(moments.labels))
        return numerical_rank(space, covariance) if self.n_components is None else least
