"""Pre-images: from a point of a kernel's feature space back to a row."""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array, check_is_fitted

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_flag, check_number
from fairpca.estimators.kernel_features import KernelReduction


class PreimageReduction(KernelReduction):
    """A reduction with a kernel that can learn the way back from its landmarks."""

    fit_inverse_transform: bool
    alpha: float

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Rows whose reduction is near to these: pre-images, of which there need not be any.

        They are learned as scikit-learn's `KernelPCA` learns them, by kernel ridge regression from
        the reduced landmarks to the landmarks. As there, the regression has no intercept, so centre
        the columns first. How far they are from the rows is not what the certificate is about: see
        `reconstruction_errors`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)
            Reduced rows.

        Returns
        -------
        array of shape (n_samples, n_features_in_)
        """
        check_is_fitted(self)
        if self._preimages is None:
            raise NotFittedError(
                "inverse_transform has not been learned: set fit_inverse_transform=True and fit."
            )
        reduced = check_array(X, dtype=[np.float64, np.float32])
        self._check_reduced(reduced)
        learned_from, coefficients = self._preimages
        restored: Array = self._kernel_matrix(reduced, learned_from) @ coefficients
        return restored.astype(reduced.dtype, copy=False)

    def _check_preimages(self) -> None:
        """Raise ValueError for parameters with which there are none to be learned."""
        check_flag("fit_inverse_transform", self.fit_inverse_transform)
        check_number("alpha", self.alpha, least=0.0)
        if self.fit_inverse_transform and self.kernel == "precomputed":
            raise ValueError(
                "fit_inverse_transform needs rows, not a precomputed kernel: leave it out."
            )

    def _check_dense(self, rows: Any) -> None:
        if self.fit_inverse_transform and hasattr(rows, "toarray"):
            raise ValueError("fit_inverse_transform needs dense rows: leave it out, or densify X.")

    def _learn_preimages(self) -> None:
        """Learn them, if that is asked for; the components are known."""
        self._preimages: tuple[Array, Array] | None = None
        if not self.fit_inverse_transform:
            return
        blocks = self._kernels(self.X_fit_)
        reduced = np.concatenate([self._project(self._centred(kernel)) for _, kernel in blocks])
        kernel = self._kernel_matrix(reduced, reduced)
        kernel[np.diag_indices_from(kernel)] += self.alpha
        try:
            coefficients = scipy.linalg.solve(kernel, self.X_fit_, assume_a="pos", overwrite_a=True)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                f"inverse_transform cannot be learned with alpha={self.alpha!r}, because the "
                "kernel matrix of the reduced rows is not positive definite: set a larger alpha."
            ) from error
        self._preimages = reduced, coefficients
