"""A transform that leaves the rows of Dask and Spark on their cluster."""

from typing import Any

from fairpca._linalg.backends import cluster_library


class DistributedTransform:
    """`transform` and `fit_transform` that leave the rows of Dask and Spark where they are.

    It comes before `LinearReduction` among the bases, and so before the wrapping of scikit-learn
    that makes what `set_output` asks for: that would gather all rows.
    """

    def transform(self, X: Any) -> Any:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Or an array or data frame of Dask, or a data frame of Spark. Those two take the columns
            of the fit by their names and leave others out.

        Returns
        -------
        array of shape (n_samples, n_components_)
            Of Dask and Spark what was given: nothing is computed until its rows are asked for.
        """
        if cluster_library(X) is None:
            return super().transform(X)  # type: ignore[misc]
        from fairpca.sources import transform_distributed

        return transform_distributed(self, X)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and project the same rows on the components.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Or of Dask or Spark, as in `fit`.
        y : ignored
        **fit_params : dict
            What `fit` takes, such as ``sensitive_features``.

        Returns
        -------
        array of shape (n_samples, n_components_)
            What `transform` returns.
        """
        if cluster_library(X) is None:
            return super().fit_transform(X, y, **fit_params)  # type: ignore[misc]
        return self.fit(X, y, **fit_params).transform(X)  # type: ignore[attr-defined]
