"""WorstGroupScorer: a scorer for searches and cross-validation, by groups."""

from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from fairpca._rows.checks import check_flag, check_same_index, check_weights
from fairpca._rows.named import chosen_columns, named_columns, table_names
from fairpca._rows.text import label_text, listed
from fairpca.estimators.pipelines import find_reduction
from fairpca.exceptions import warn_user
from fairpca.inspection.audit import entering
from fairpca.metrics._scored import ScoredGroups, row_errors


class WorstGroupScorer(BaseEstimator):
    """How the worst-off group fares on rows that a reduction was not fitted to; more is better.

    A scorer for ``scoring=`` of `GridSearchCV`, `cross_validate` and the like. It judges the
    reduction, alone or inside a pipeline, which may end in a classifier, by what
    ``inverse_transform(transform(X))`` loses of the rows as they reach it. There is no score by
    disparity: it needs each group's own PCA, which fits the few rows of a fold too well.

    With metadata routing (``sklearn.set_config(enable_metadata_routing=True)``), the
    `sensitive_features` that a search is given go to `FairPCA` and to this scorer. Without, the
    scorer knows the groups only where `FairPCA` was fitted by names of columns of a data frame.

    Groups with fewer than ten rows in a fold are scored as one group, and groups of the fit with
    none are left out of its score; a warning names them.

    Parameters
    ----------
    relative : bool, default=True
        True is the share of its variance that the group keeps that keeps the least; the variance is
        measured from the fitted mean. False is minus the largest loss of a group.

    See Also
    --------
    fairpca.metrics.held_out_losses : Losses pooled over folds, before the worst group is picked.

    Examples
    --------
    >>> import numpy as np
    >>> import sklearn
    >>> from sklearn.model_selection import GridSearchCV
    >>> from fairpca import FairPCA
    >>> from fairpca.metrics import WorstGroupScorer
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(["a", "b"], [100, 200])
    >>> X = rng.normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> order = rng.permutation(300)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(
    ...         FairPCA(2, measure="variance", relative=True),
    ...         {"max_extra_loss": [0, 0.05, None]},
    ...         scoring=WorstGroupScorer(),
    ...     ).fit(X[order], sensitive_features=groups[order])
    >>> search.cv_results_["mean_test_score"].round(3)
    array([0.611, 0.648, 0.648])
    """

    # The groups are requested by default, as FairPCA requests them.
    __metadata_request__score: ClassVar[dict[str, Any]] = {
        "estimator": UNUSED,
        "sensitive_features": True,
    }

    def __init__(self, *, relative: bool = True) -> None:
        self.relative = relative

    def score(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score a fitted reduction, or a fitted pipeline with one; calling the scorer is the same.

        Parameters
        ----------
        estimator : fitted transformer with ``inverse_transform``, or Pipeline
            What is scored.
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            The rows to score, as they enter the estimator.
        y : ignored
        sensitive_features : str, list of str or array-like, default=None
            The group of each row, or names of columns of X. None looks for the columns that a
            `FairPCA` was fitted by.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows. With metadata routing, ask for them with
            ``set_score_request(sample_weight=True)``.

        Returns
        -------
        float
        """
        check_flag("relative", self.relative)
        step = find_reduction(estimator, type(self).__name__)
        check_is_fitted(step.reduction)
        if sensitive_features is None:
            sensitive_features = _fitted_names(step.reduction, X)
        check_same_index(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
        names = named_columns(X, sensitive_features)
        given = chosen_columns(X, names) if names else sensitive_features
        rows = entering(step.rows(entering(X, estimator, names)), step.reduction, names)
        n = rows.shape[0] if hasattr(rows, "shape") else len(rows)
        weights = check_weights(sample_weight, n)
        groups = ScoredGroups.of_rows(step.reduction, given, n, weights)
        _warn_of_absent(step.reduction, groups)
        lost = groups.lost(*row_errors(step.reduction, rows, weights), relative=self.relative)
        worst = float(lost.max())
        return 1.0 - worst if self.relative else -worst

    def __call__(self, estimator: Any, X: Any, y: Any = None, **known: Any) -> float:
        """Score a fitted estimator, as scikit-learn calls scorers."""
        return self.score(estimator, X, y, **known)

    def _accept_sample_weight(self) -> bool:
        # What scikit-learn asks of scorers where metadata routing is off.
        return True


def _fitted_names(reduction: Any, X: Any) -> list[str]:
    """The columns that a reduction was fitted by, where X has them; else raise ValueError."""
    names = list(getattr(reduction, "sensitive_names_", ()))
    columns, features = table_names(X) or (), getattr(reduction, "feature_names_in_", None)
    # A feature with the name of a sensitive column need not hold its labels: ages, say, and bins.
    if names and features is not None and not {*names} & {*features} and {*names} <= {*columns}:
        return names
    raise ValueError(
        "WorstGroupScorer was not given the groups of the rows: turn metadata routing on with "
        "sklearn.set_config(enable_metadata_routing=True) and pass sensitive_features=… to the "
        "search's fit (to cross_validate in params={'sensitive_features': …}), or let FairPCA "
        "take them from columns of a data frame by name."
    )


def _warn_of_absent(reduction: Any, groups: ScoredGroups) -> None:
    """Warn of groups of the fit without any row to score."""
    table = getattr(reduction, "group_table_", None)
    if table is None or reduction.groups is None:
        return
    absent = [label for label in table.labels if label not in groups.labels]
    if absent:
        texts = [label_text(label, table.group_names) for label in absent]
        warn_user(
            f"No rows to score in the groups {listed(texts, 5)}: the score is the worst of the "
            "others. Take fewer folds, or folds with rows of every group (StratifiedKFold by "
            "group)."
        )
