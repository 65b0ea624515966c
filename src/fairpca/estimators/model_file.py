"""Model files: a fitted FairPCA, with the preparation of its columns, in a file without pickle.

A file (suffix ``.fairpca``) is an uncompressed zip archive. It holds ``header.json`` and one
``.npy`` file of float64 for each array, so ``numpy.load(path)["components"]`` reads one too.
The header has these keys:

=================  ============================================================================
``format``         "fairpca model"
``version``        1; a reader refuses versions that are newer than its own
``fairpca``        the version of the library that wrote it
``checksums``      SHA-256 of each array's ``.npy`` file, by name, against damage
``parameters``     the parameters of `FairPCA` that are numbers, texts, None or lists of these; a
                   dictionary is ``{"items": [[key, value], …]}``, an infinite number
                   ``{"number": "inf"}``
``left_out``       those that are objects, such as a solver, as text; they are not restored
``noise``          the mean variance in the directions that were left out
``feature_names``  names of the columns that `FairPCA` was fitted on, or null
``preparation``    ``columns`` (name, kind, categories, pool and fill of each), ``ignored`` and
                   ``sensitive`` of a `Preparation`, or null
``groups``         ``name``, ``labels``, ``count``, ``names`` (of the sensitive columns, or null)
                   and ``pca_is_best`` of the table of groups
``certificate``    the numbers of the certificate that are no arrays, and its ``text``
``nesting``        the status of each step of a nested subspace, or null
``solution``       ``solver``, ``n_iter``, ``n_eigen``, ``message`` and ``total_loss``
=================  ============================================================================

The arrays are ``components``, ``mean``, ``explained_variance``, ``explained_variance_ratio``,
``singular_values``, ``basis``, ``group_losses``, ``own_losses``, ``pca_losses``, ``variances``,
``measures``, ``change_from_pca``, ``multipliers`` and, where there are any, ``projection_factors``,
``retention``, ``violation_multipliers``, ``minmax_measures``, ``held_out`` (of the table),
``means`` and ``scales`` (of the preparation), ``own_bases`` and ``pca_basis`` (of the `Baselines`),
``nesting_value``,
``nesting_free_value``, ``nesting_free_bound`` and ``nesting_gap`` (of a `NestingTable`).
Infinite numbers are texts in the header. A solver's `history` is not kept. Groups whose labels are
neither text nor numbers come back as text.
"""

from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_flag
from fairpca._rows.small_groups import warn_of_small_groups
from fairpca._rows.text import label_text
from fairpca._rows.words import MIN_ROWS
from fairpca.estimators._model_parts import (
    ARRAYS,
    arrays_of,
    baseline_arrays,
    header_of,
    restored,
)
from fairpca.estimators.baselines import baselines_of
from fairpca.estimators.fair_pca import FairPCA
from fairpca.files.archive import FileFormat
from fairpca.files.checks import taking_for_damage
from fairpca.group_table import GroupTable
from fairpca.tables.preparation import Preparation

FORMAT = "fairpca model"
VERSION = 1

_SMALL_BASELINES = 2**20
"""Bytes of the training rows' subspaces that are written unasked."""

_FILE = FileFormat(FORMAT, VERSION, "fairpca model file", ARRAYS)


@dataclass(frozen=True, eq=False)
class FairModel:
    """A fitted `FairPCA` with the preparation of its columns: from a table to its reduced rows.

    Attributes
    ----------
    fair_pca : FairPCA
        Fitted; it takes prepared columns.
    preparation : Preparation or None
        What makes them of a table. None takes arrays as they are.
    certificate_text : str
        The certificate in words, as they were at the fit.

    See Also
    --------
    fairpca.estimators.model_file.load_model : Reads one.

    Examples
    --------
    See `load_model`.
    """

    fair_pca: FairPCA
    preparation: Preparation | None
    certificate_text: str

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns that a table needs; None where the fit had no names."""
        if self.preparation is None:
            return None
        return tuple(column.name for column in self.preparation.columns)

    @property
    def group_table(self) -> GroupTable:
        """What each group lost at the fit."""
        return self.fair_pca.group_table_

    def transform(self, table: Any) -> Array:
        """Reduce the rows of a table.

        Parameters
        ----------
        table : data frame or dict of columns
            With the columns of the fit, in any order (`Preparation.apply` says what is refused);
            an array where the fit had no names.

        Returns
        -------
        array of shape (n_rows, n_components_)
        """
        reduced: Array = self.reduction.transform(self.prepare(table))
        return reduced

    @property
    def reduction(self) -> FairPCA:
        """`fair_pca` for columns that `prepare` made, which have no names that it could check."""
        reduction = copy(self.fair_pca)
        if self.preparation is not None and hasattr(reduction, "feature_names_in_"):
            del reduction.feature_names_in_
        return reduction

    def prepare(self, table: Any) -> Any:
        """The columns of numbers that are reduced: encoded and scaled."""
        return table if self.preparation is None else self.preparation.apply(table)

    def inverse_transform(self, reduced: ArrayLike) -> Array:
        """Bring reduced rows back to the encoded columns, in their own units.

        Parameters
        ----------
        reduced : array-like of shape (n_rows, n_components_)
            What `transform` gave.

        Returns
        -------
        array of shape (n_rows, n_outputs)
            A column for each of `Preparation.feature_names`; those of categories hold fractions.
        """
        restored = self.fair_pca.inverse_transform(reduced)
        return restored if self.preparation is None else self.preparation.undo_scaling(restored)


def save_model(
    fitted: FairPCA,
    path: str | Path,
    *,
    preparation: Preparation | None = None,
    baselines: bool | None = None,
) -> None:
    """Write a fitted FairPCA to a file that holds no code.

    The file is written beside `path` and then takes its place, so that it is whole or not there.
    It warns where a group has fewer than 5 rows; docs/privacy.md says what a model file reveals.

    Parameters
    ----------
    fitted : FairPCA
        What to keep.
    path : str or Path
        Where to, by custom with the suffix ``.fairpca``.
    preparation : Preparation, default=None
        What made the columns it was fitted on. None takes them as they are: by name, if the fit
        was on a data frame.
    baselines : bool, default=None
        Whether to write the subspaces of the training rows, `FairPCA.baselines_`, with which
        ``audit(…, baseline="training")`` measures others. None does where that takes at most 1 MB
        and no group has fewer than 5 rows: the own subspace of a group of one row is that row.

    See Also
    --------
    fairpca.estimators.model_file.load_model : Reads the file.

    Examples
    --------
    See `load_model`.
    """
    parts = _parts(fitted, preparation, baselines)
    table = fitted.group_table_
    groups = [label_text(label, table.group_names) for label in table.labels]
    warn_of_small_groups("model file", groups, table.count)
    _FILE.write(path, *parts)


def load_model(path: str | Path) -> FairModel:
    """Read what `save_model` wrote.

    Nothing in the file is run. The checksums guard against damage, not against someone who
    changes the numbers on purpose.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    FairModel

    Raises
    ------
    ValueError
        If this is no model file, or a damaged one, or one of a newer version of the format.

    See Also
    --------
    fairpca.estimators.model_file.save_model : Writes the file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.estimators.model_file import load_model, save_model
    >>> from fairpca.tables.preparation import Preparation
    >>> rng = np.random.default_rng(0)
    >>> table = {"a": rng.normal(size=50), "b": rng.normal(size=50), "sex": ["f", "m"] * 25}
    >>> preparation = Preparation.learn(table, sensitive=["sex"])
    >>> fair = FairPCA(1).fit(preparation.apply(table), sensitive_features=table["sex"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(fair, f"{folder}/model.fairpca", preparation=preparation)
    ...     model = load_model(f"{folder}/model.fairpca")
    >>> model.columns
    ('a', 'b')
    >>> model.transform({"b": [0.5], "a": [1.5]}).shape
    (1, 1)
    >>> model.fair_pca.certificate_.status
    'optimal'
    """
    header, arrays = _FILE.read(path)
    with taking_for_damage(repr(str(path))):
        return FairModel(*restored(header, arrays))


def write_model(fitted: FairPCA, path: str | Path, preparation: Preparation | None = None) -> None:
    """`save_model` without its warning, for callers that have said it in their own words."""
    _FILE.write(path, *_parts(fitted, preparation, None))


def _parts(
    fitted: FairPCA, preparation: Preparation | None, baselines: bool | None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a fit, once it is one that can be kept."""
    if baselines is not None:
        check_flag("baselines", baselines)
    if not isinstance(fitted, FairPCA):
        raise TypeError(f"Only a FairPCA can be saved, not a {type(fitted).__name__}.")
    check_is_fitted(fitted)
    names = getattr(fitted, "feature_names_in_", None)
    if preparation is None and names is not None and len(set(names)) == len(names):
        # What made the groups may be in a table, as for the estimator itself.
        left_out = tuple(name for name in fitted.sensitive_names_ if name not in names)
        preparation = replace(Preparation.of_numbers(names), ignored=left_out)
    if preparation is not None and len(preparation.means) != fitted.n_features_in_:
        raise ValueError(
            f"The preparation makes {len(preparation.means)} columns, and the FairPCA was fitted "
            f"on {fitted.n_features_in_}."
        )
    arrays = arrays_of(fitted, preparation)
    if baselines:
        arrays |= baseline_arrays(baselines_of(fitted))
    elif baselines is None and fitted.baselines_ is not None:
        small = fitted.baselines_.nbytes <= _SMALL_BASELINES
        # With the variance of a group of one row, its own subspace gives that row away.
        many = bool((fitted.group_table_.count >= MIN_ROWS).all())
        arrays |= baseline_arrays(fitted.baselines_) if small and many else {}
    return header_of(fitted, preparation), arrays
