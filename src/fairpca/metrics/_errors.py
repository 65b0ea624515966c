"""Errors of reconstruction, and averages of disparities."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from sklearn.utils import check_array, check_consistent_length

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca._rows.checks import check_same_index, check_weights


def reconstruction_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mean squared distance between rows and their reconstructions.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples, n_features)
        The rows, and the rows after a reduction and back.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the rows.

    Returns
    -------
    float

    See Also
    --------
    fairpca.metrics.disparity_error : Minus what the rows' own PCA loses.

    Examples
    --------
    >>> from fairpca.metrics import reconstruction_error
    >>> reconstruction_error([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [3.0, 4.0]])
    2.0
    """
    check_same_index(y_true, y_pred=y_pred, sample_weight=sample_weight)
    true, pred = _checked(y_true, y_pred)
    errors = np.square(true - pred).sum(axis=1)
    return float(np.average(errors, weights=check_weights(sample_weight, len(true))))


def disparity_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    n_components: int,
    mean: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Reconstruction error minus that of the rows' own PCA in as many dimensions.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples, n_features)
        The rows of a group, and the same rows after a reduction and back.
    n_components : int
        Number of dimensions of the reduction.
    mean : array-like of shape (n_features,)
        Where the rows' own PCA is centred: the mean of all rows, of all groups, for disparities
        as `FairPCA` defines them.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the rows.

    Returns
    -------
    float

    See Also
    --------
    fairpca.metrics.reconstruction_error : The loss itself.

    Examples
    --------
    >>> from fairpca.metrics import disparity_error
    >>> rows = [[3.0, 0.0], [0.0, 1.0]]
    >>> disparity_error(rows, [[0.0, 0.0], [0.0, 1.0]], n_components=1, mean=[0.0, 0.0])
    4.0
    """
    check_same_index(y_true, y_pred=y_pred, sample_weight=sample_weight)
    true, _ = _checked(y_true, y_pred)
    if not 1 <= n_components <= true.shape[1]:
        raise ValueError(
            f"n_components must be from 1 to the number of columns, {true.shape[1]}, "
            f"got {n_components}."
        )
    weights = check_weights(sample_weight, len(true))
    weights = np.ones(len(true)) if weights is None else weights
    center = np.asarray(mean, dtype=np.float64)
    if center.shape != true.shape[1:]:
        raise ValueError(
            f"mean must be one number for each of the {true.shape[1]} columns, "
            f"got shape {center.shape}."
        )
    centred = true - center
    matrix = (centred.T * weights) @ centred / weights.sum()
    kept = leading_eigenpairs(matrix, n_components)[0].sum()
    own = max(float(np.trace(matrix) - kept), 0.0)
    return reconstruction_error(y_true, y_pred, sample_weight=sample_weight) - own


def mean_disparity(disparities: ArrayLike) -> float:
    """Unweighted mean of the groups' disparities.

    The mean weighted by group size is smallest for ordinary PCA, whatever the groups, so it says
    nothing about fairness.

    Parameters
    ----------
    disparities : array-like of shape (k,)
        One number for each group.

    Returns
    -------
    float

    See Also
    --------
    fairpca.metrics.mean_pairwise_disparity : How far apart the groups are.

    Examples
    --------
    >>> from fairpca.metrics import mean_disparity
    >>> mean_disparity([1.0, 2.0, 6.0])
    3.0
    """
    return float(np.mean(_groups(disparities)))


def mean_pairwise_disparity(disparities: ArrayLike) -> float:
    """Mean absolute difference between the disparities of two groups, over all pairs.

    Parameters
    ----------
    disparities : array-like of shape (k,)
        One number for each group.

    Returns
    -------
    float

    See Also
    --------
    fairpca.metrics.mean_disparity : How much they lose on average.

    Examples
    --------
    >>> from fairpca.metrics import mean_pairwise_disparity
    >>> round(mean_pairwise_disparity([1.0, 2.0, 6.0]), 6)
    3.333333
    """
    values = _groups(disparities)
    return float(pdist(values[:, None]).mean()) if len(values) > 1 else 0.0


def _checked(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Array, Array]:
    true = check_array(y_true, dtype=np.float64, input_name="y_true")
    pred = check_array(y_pred, dtype=np.float64, input_name="y_pred")
    check_consistent_length(true, pred)
    if true.shape != pred.shape:
        raise ValueError(
            f"y_true has {true.shape[1]} columns and y_pred {pred.shape[1]}: bring the rows back "
            "with inverse_transform first."
        )
    return true, pred


def _groups(disparities: ArrayLike) -> Array:
    values = np.asarray(disparities, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"disparities must be one number for each group, got {disparities!r}.")
    return values
