"""Model files: a fitted FairPCA, with the preparation of its columns, in a file without pickle.

A file (suffix ``.fairpca``) is an archive of `fairpca.files.archive`; `SCHEMA` says what is in it.
Parameters of `FairPCA` that are numbers, texts, None, criteria of ours, or lists and dictionaries
of these are kept; others, such as a solver, are not. Nor is a solver's `history`. Labels of groups
that are neither texts, numbers, dates nor times come back as text.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.dense import NEARLY_ORTHONORMAL
from fairpca._linalg.types import Array
from fairpca.certificate import Certificate
from fairpca.choices import MIN_ROWS
from fairpca.criteria import CRITERIA, FINDINGS, AtMost, Criterion
from fairpca.fair_pca import Baselines, FairPCA
from fairpca.files.archive import (
    COUNT,
    FINITE,
    FLAG,
    NUMBER,
    POSITIVE,
    ROWS,
    SIZE,
    TEXT,
    FileFormat,
    Optional,
    Sizes,
    Texts,
    Values,
    checked_texts,
    label_as_data,
    label_from_data,
    labels,
    quoted,
    require,
    taking_for_damage,
    word,
)
from fairpca.group_table import GroupTable, HeldOut
from fairpca.groups import warn_of_small_groups
from fairpca.measures import BY_NOUN
from fairpca.solution import Solution
from fairpca.tables.preparation import InputColumn, Preparation
from fairpca.text import label_text


def _check_orthonormal(rows: Array, what: str) -> None:
    with np.errstate(all="ignore"):
        away = np.abs(rows @ np.swapaxes(rows, -1, -2) - np.eye(rows.shape[-2])).max(initial=0.0)
    require(away <= NEARLY_ORTHONORMAL, f"its numbers of {what} are not orthonormal")


def _check_basis(basis: Array, what: str) -> None:
    _check_orthonormal(np.swapaxes(basis, -1, -2), what)


def _fill(value: Any, what: str, sizes: Sizes) -> float | str:
    return value if isinstance(value, str) else FINITE(value, what, sizes)


_KNOWN: list[type[Criterion]] = [*CRITERIA.values(), AtMost]
_CRITERIA = {kind.__name__: kind for kind in _KNOWN}
"""The criteria that a file can name."""


def _kept(value: Any) -> Any:
    """A parameter as JSON has it; TypeError if a file cannot keep it."""
    if isinstance(value, Criterion):
        parameters = {name: _kept(part) for name, part in value.get_params().items()}
        return {"criterion": type(value).__name__, "parameters": parameters}
    if isinstance(value, dict):
        return {"items": [[label_as_data(key), _kept(part)] for key, part in value.items()]}
    if isinstance(value, list | tuple | np.ndarray):
        return [_kept(part) for part in value]
    if value is None or isinstance(value, str | bool | int | float | np.generic):
        return label_as_data(value)
    raise TypeError


def _given(stored: Any) -> Any:
    """The parameter that was kept; sequences come back as lists."""
    if isinstance(stored, list):
        return [_given(part) for part in stored]
    if isinstance(stored, dict) and "criterion" in stored:
        require(stored["criterion"] in _CRITERIA, "its criterion is not known")
        return _CRITERIA[stored["criterion"]](**_parameters(stored["parameters"], "", {}))
    if isinstance(stored, dict) and "items" in stored:
        return {label_from_data(key): _given(part) for key, part in stored["items"]}
    return label_from_data(stored)


def _parameters(value: Any, what: str, sizes: Sizes) -> dict[str, Any]:
    FLAG(value.get("whiten", False), f"{what}.whiten", sizes)
    return {name: _given(part) for name, part in value.items()}


_STATUSES = ("optimal", "bounded", "infeasible", "unresolved", "relaxed")

_SHARES = -NEARLY_ORTHONORMAL, 1.0 + NEARLY_ORTHONORMAL
"""Between which shares are, up to rounding."""

SCHEMA = {
    "components": Values("rd", check=_check_orthonormal),
    "mean": Values("d"),
    **dict.fromkeys(
        ("explained_variance", "explained_variance_ratio", "singular_values"), Values("r", 0.0)
    ),
    "projection_factors": Optional(Values("r", *_SHARES)),
    "noise_variance": FINITE,
    "filled_share": Optional(Values("k", *_SHARES)),
    "feature_names": Optional(Texts("d", different=False)),
    "parameters": _parameters,
    "groups": {
        "count": ROWS,
        "labels": labels,
        "group_names": Optional(Texts()),
        "name": TEXT,
        "notes": Texts(),
        "pca_is_best": FLAG,
        **dict.fromkeys(("loss", "own_loss", "pca_loss"), Values("k")),
        "variance": Values("k", 0.0),
        "weight": Optional(Values("k", POSITIVE)),
        "held_out": Optional(
            dict.fromkeys(("pca_loss", "loss", "own_loss", "weight"), Values("k"))
        ),
    },
    "solution": {
        "basis": Values("dn", check=_check_basis),
        "retention": Optional(Values("n", *_SHARES)),
        **dict.fromkeys(("solver", "message"), TEXT),
        **dict.fromkeys(("n_iter", "n_eigen"), COUNT),
        "total_loss": FINITE,
    },
    "certificate": {
        **{one.name: NUMBER for one in fields(Certificate)},
        "status": word(*_STATUSES),
        "goal": word(*FINDINGS),
        "measure": word(*BY_NOUN),
        "stopped_by": word("", "gap", "time limit", "callback"),
        "covers_mixtures": FLAG,
        **dict.fromkeys(("n_components", "n_dimensions"), SIZE),
        **dict.fromkeys(("extra_loss", "requested_tolerance"), Optional(NUMBER)),
        **dict.fromkeys(("multipliers", "measures", "change_from_pca"), Values("k")),
        **dict.fromkeys(("violation_multipliers", "minmax_measures"), Optional(Values("k"))),
    },
    "baselines": Optional(
        {
            "own_bases": Values("kdo", check=_check_basis),
            "pca_basis": Values("do", check=_check_basis),
        }
    ),
    "preparation": Optional(
        {
            "columns": [
                {
                    "name": TEXT,
                    "categories": Texts(),
                    "pool": TEXT,
                    "fill": Optional(_fill),
                }
            ],
            "means": Values("d"),
            "scales": Values("d", POSITIVE),
            "ignored": Texts(),
            "sensitive": Texts(),
        }
    ),
}
"""What a model file holds. Axes: r components of d columns, k groups, a basis of n vectors, and
groups' own subspaces of o dimensions."""

FORMAT = "fairpca model"
VERSION = 1

_FILE = FileFormat(FORMAT, VERSION, "fairpca model file", SCHEMA)

_ATTRIBUTES = (
    *("components", "mean", "explained_variance", "explained_variance_ratio", "singular_values"),
    *("projection_factors", "noise_variance", "filled_share"),
)
"""Of a FairPCA, those that stand in the file under their names."""


@dataclass(frozen=True, eq=False)
class FairModel:
    """A fitted `FairPCA` with the preparation of its columns: from a table to its reduced rows.

    Attributes
    ----------
    fair_pca : FairPCA
        Fitted; it takes prepared columns.
    preparation : Preparation or None
        What makes them of a table. None takes arrays as they are.

    See Also
    --------
    fairpca.model_file.load_model : Reads one.

    Examples
    --------
    See `load_model`.
    """

    fair_pca: FairPCA
    preparation: Preparation | None = field(repr=False)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns that a table needs; None where the fit had no names."""
        if self.preparation is None:
            return None
        return tuple(column.name for column in self.preparation.columns)

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
        prepared = table if self.preparation is None else self.preparation.apply(table)
        reduced: Array = self.reduction.transform(prepared)
        return reduced

    @property
    def reduction(self) -> FairPCA:
        """`fair_pca` for prepared columns, which have no names that it could check."""
        reduction = copy(self.fair_pca)
        if self.preparation is not None and hasattr(reduction, "feature_names_in_"):
            del reduction.feature_names_in_
        return reduction

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
        restored: Array = self.fair_pca.inverse_transform(reduced)
        how = self.preparation
        return restored if how is None else restored * how.scales + how.means


def save_model(
    fitted: FairPCA,
    path: str | Path,
    *,
    preparation: Preparation | None = None,
) -> None:
    """Write a fitted FairPCA to a file that holds no code.

    The file is written beside `path` and then takes its place, so that it is whole or not there.
    It warns where a group has fewer than 5 rows; docs/privacy.md says what a model file reveals.
    The subspaces of the training rows, with which ``audit(…, baseline="training")`` measures
    others, are kept unless a group has fewer than 5 rows: the own subspace of a group of one row is
    that row.

    Parameters
    ----------
    fitted : FairPCA
        What to keep.
    path : str or Path
        Where to, by custom with the suffix ``.fairpca``.
    preparation : Preparation, default=None
        What made the columns it was fitted on. None takes them as they are: by name, if the fit
        was on a data frame.

    See Also
    --------
    fairpca.model_file.load_model : Reads the file.

    Examples
    --------
    See `load_model`.
    """
    if not isinstance(fitted, FairPCA):
        raise TypeError(
            f"Only a FairPCA can be saved, not a {type(fitted).__name__}: of a pipeline, save the "
            "step that is one, and keep the others, or save all of it with joblib.dump."
        )
    check_is_fitted(fitted)
    if isinstance(fitted.criterion, Criterion) and type(fitted.criterion) not in _CRITERIA.values():
        raise ValueError(
            f"A model file cannot keep the criterion {type(fitted.criterion).__name__}, which is "
            "not one of fairpca: save the estimator with joblib.dump instead."
        )
    names = getattr(fitted, "feature_names_in_", None)
    if preparation is None and names is not None and len(set(names)) == len(names):
        # What made the groups may be in a table, as for the estimator itself.
        ignored = tuple(name for name in fitted.sensitive_names_ if name not in names)
        columns, d = tuple(InputColumn(name) for name in names), len(names)
        preparation = Preparation(columns, np.zeros(d), np.ones(d), ignored)
    if preparation is not None and len(preparation.means) != fitted.n_features_in_:
        raise ValueError(
            f"The preparation makes {len(preparation.means)} columns, and the FairPCA was fitted "
            f"on {fitted.n_features_in_}."
        )
    # With the variance of a group of one row, its own subspace gives that row away.
    many = bool((fitted.group_table_.count >= MIN_ROWS).all())
    parameters: dict[str, Any] = {}
    for name, value in fitted.get_params(deep=False).items():
        with suppress(TypeError):
            parameters[name] = _kept(value)
    table = fitted.group_table_
    source = {
        **{name: getattr(fitted, f"{name}_") for name in _ATTRIBUTES},
        "feature_names": names if names is None else names.tolist(),
        "parameters": parameters,
        "groups": table,
        "solution": fitted.solution_,
        "certificate": fitted.certificate_,
        "baselines": fitted.baselines_ if many else None,
        "preparation": preparation,
    }
    _FILE.write(path, source)
    groups = [label_text(label, table.group_names) for label in table.labels]
    warn_of_small_groups("model file", groups, table.count)


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
    fairpca.model_file.save_model : Writes the file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.model_file import load_model, save_model
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
    found = _FILE.read(path)
    with taking_for_damage(repr(str(path))):
        return _restored(found)


def _restored(found: dict[str, Any]) -> FairModel:
    """The model of what a file holds."""
    certificate = Certificate(**found["certificate"])
    fair = FairPCA(**found["parameters"])
    for name in _ATTRIBUTES:
        setattr(fair, f"{name}_", found[name])
    fair.n_components_, fair.n_features_in_ = fair.components_.shape
    if found["feature_names"] is not None:
        fair.feature_names_in_ = np.array(found["feature_names"], dtype=object)
    groups, held_out = found["groups"], found["groups"].pop("held_out")
    fair.group_table_ = table = GroupTable(
        **groups, held_out=None if held_out is None else HeldOut(**held_out)
    )
    fair.sensitive_names_ = table.group_names or ()
    fair.certificate_ = certificate
    fair.solution_ = Solution(
        **found["solution"],
        group_losses=table.loss,
        disparities=table.disparity,
        certificate=certificate,
    )
    fair.baselines_ = None
    if found["baselines"] is not None:
        bases = found["baselines"]
        fair.baselines_ = Baselines(table.labels, table.count, **bases, mean=fair.mean_)
    preparation = None
    if found["preparation"] is not None:
        kept = found["preparation"]
        checked_texts([column["name"] for column in kept["columns"]], "columns")
        columns = tuple(InputColumn(**column) for column in kept.pop("columns"))
        for column in columns:
            texts, pool, fill = column.categories, column.pool, column.fill
            require(not pool or texts[-1:] == (pool,), f"its pool {quoted(pool)} is not last")
            known = fill is None or (fill in texts if texts else not isinstance(fill, str))
            require(known, f"{quoted(fill)} is none of the values of its columns")
        preparation = Preparation(columns, **kept)
        made, d = len(preparation.feature_names), fair.n_features_in_
        require(made == d, f"its columns become {made}, and its components are of {d}")
    str(certificate)  # whose parts must make sentences
    return FairModel(fair, preparation)
