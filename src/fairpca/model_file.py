"""What a model file keeps of a fitted FairPCA and its preparation, and how they come back."""

from __future__ import annotations

import math
from collections.abc import Hashable
from copy import copy
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.types import Array
from fairpca.certificate import Certificate
from fairpca.choices import MIN_ROWS
from fairpca.criteria import CRITERIA, FINDINGS, AtMost, Criterion
from fairpca.fair_pca import Baselines, FairPCA, NestingTable, baselines_of
from fairpca.files.archive import FLOATS, FileFormat
from fairpca.files.checks import (
    check_finite,
    check_positive,
    checked_number,
    checked_texts,
    checked_type,
    checked_whole,
    quoted,
    require,
    taking_for_damage,
)
from fairpca.group_table import GroupTable
from fairpca.groups import warn_of_small_groups
from fairpca.measures import BY_NOUN
from fairpca.solution import Solution
from fairpca.tables.preparation import KINDS, InputColumn, Preparation
from fairpca.text import label_text
from fairpca.validation import check_flag

# What the header and the arrays of a model file must be, before anything is made of them.

_STATUSES = ("optimal", "bounded", "infeasible", "unresolved", "relaxed")
_NEEDED = (
    *("components", "mean", "explained_variance", "explained_variance_ratio", "singular_values"),
    *("basis", "group_losses", "own_losses", "pca_losses", "variances"),
    *("measures", "change_from_pca", "multipliers"),
)
_STOPPED_BY = ("", "gap", "time limit", "callback")
_TEXTS = ("status", "goal", "measure", "stopped_by", "text")
_FLAGS = ("covers_mixtures", "pca_is_least", "is_nested")
_OPTIONAL = ("extra_loss", "requested_tolerance")
"""Numbers of a certificate that may be null."""

_ORTHONORMAL = 1e-6
"""How far components may be from orthonormal: solvers promise it up to rounding, and Krylov methods
with very many columns up to about 1e-10."""


def check_parts(header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Refuse a header or arrays that no fit has; each refusal is a clause."""
    missing = next((name for name in _NEEDED if name not in arrays), None)
    require(missing is None, f"its array {missing} is missing")
    (r, d), k = arrays["components"].shape, len(header["groups"]["count"])
    _check_shapes(arrays, r, d, k)
    _check_values(arrays)
    _check_groups(header["groups"], k)
    _check_certificate(header["certificate"])
    _check_rest(header, r, d)
    if header["preparation"] is not None:
        _check_preparation(header["preparation"])
        for name in ("means", "scales"):
            fits = name in arrays and arrays[name].shape == (d,)
            require(fits, f"its {name} are not one for each column")
        check_finite(arrays["means"], "means of columns")
        check_positive(arrays["scales"], "scales of columns")


def _check_shapes(arrays: dict[str, Array], r: int, d: int, k: int) -> None:
    n = arrays["basis"].shape[1]
    own = arrays["pca_basis"].shape[1] if "pca_basis" in arrays else 0
    steps = ("nesting_value", "nesting_free_value", "nesting_free_bound", "nesting_gap")
    groups = (
        *("group_losses", "own_losses", "pca_losses", "variances", "measures"),
        *("change_from_pca", "multipliers", "violation_multipliers", "minmax_measures"),
    )
    axes = ("explained_variance", "explained_variance_ratio", "singular_values")
    shapes: dict[str, tuple[int, ...]] = {
        "mean": (d,),
        "basis": (d, n),
        "retention": (n,),
        "held_out": (2, k),
        "own_bases": (k, d, own),
        "pca_basis": (d, own),
        **dict.fromkeys((*axes, "projection_factors", *steps), (r,)),
        **dict.fromkeys(groups, (k,)),
    }
    for name, shape in shapes.items():
        fits = name not in arrays or arrays[name].shape == shape
        require(fits, f"its array {name} is of another shape than the rest of it")
    both = ("own_bases" in arrays) == ("pca_basis" in arrays)
    require(both, "of the subspaces of its training rows only some are there")


def _check_values(arrays: dict[str, Array]) -> None:
    for name, array in arrays.items():
        if name not in ("held_out", "scales"):  # the first has gaps, the second is looked at closer
            check_finite(array, f"numbers of {name}")
    spans = [("components", arrays["components"]), ("basis", arrays["basis"].T)]
    spans += [("pca_basis", arrays["pca_basis"].T)] if "pca_basis" in arrays else []
    spans += [("own_bases", basis.T) for basis in arrays.get("own_bases", ())]
    with np.errstate(all="ignore"):
        for name, rows in spans:
            away = np.abs(rows @ rows.T - np.eye(len(rows))).max(initial=0.0)
            require(away <= _ORTHONORMAL, f"its {name} are not orthonormal")
    for name in ("explained_variance", "explained_variance_ratio", "singular_values", "variances"):
        require((arrays[name] >= 0.0).all(), f"its numbers of {name} are not all positive or zero")
    for name in ("retention", "projection_factors"):
        shares = arrays.get(name, np.zeros(0))
        inside = (shares >= -_ORTHONORMAL) & (shares <= 1.0 + _ORTHONORMAL)
        require(inside.all(), f"its numbers of {name} are not all between 0 and 1")


def _check_groups(groups: dict[str, Any], k: int) -> None:
    checked_type(groups["name"], "name of the reduction", str, "text")
    checked_type(groups["pca_is_best"], "entry pca_is_best", bool, "true or false")
    for count in groups["count"]:
        checked_whole(count, "number of rows of a group", 1)
    labels = groups["labels"]
    require(isinstance(labels, list) and len(labels) == k, f"it has no labels for its {k} groups")
    for label in labels:
        parts = label if isinstance(label, list) else [label]
        good = bool(parts) and all(isinstance(part, str | int | float) for part in parts)
        require(good, f"{quoted(label)} can be no label of a group")
    different = len({tuple(label) if isinstance(label, list) else label for label in labels})
    require(different == k, "two of its groups have the same label")
    if groups.get("names") is not None:
        checked_texts(groups["names"], "names of sensitive columns")


def _check_certificate(certificate: dict[str, Any]) -> None:
    known = {
        "status": _STATUSES,
        "goal": tuple(FINDINGS),
        "measure": tuple(BY_NOUN),
        "stopped_by": _STOPPED_BY,
    }
    for name, value in certificate.items():
        what = f"certificate's {name}"
        if name in _TEXTS:
            checked_type(value, what, str, "text")
            require(value in known.get(name, (value,)), f"its {what} is {quoted(value)}, not known")
        elif name in _FLAGS:
            checked_type(value, what, bool, "true or false")
        elif name in ("n_components", "n_dimensions"):
            checked_whole(value, what, 1)
        elif not (value is None and name in _OPTIONAL):
            checked_number(value, what)


def _check_rest(header: dict[str, Any], r: int, d: int) -> None:
    checked_number(header["noise"], "variance that is left out", finite=True)
    solution = header["solution"]
    for name in ("solver", "message"):
        checked_type(solution[name], f"entry {name}", str, "text")
    for name in ("n_iter", "n_eigen"):
        checked_whole(solution[name], f"entry {name}", 0)
    checked_number(solution["total_loss"], "total loss", finite=True)
    if header["feature_names"] is not None:
        checked_texts(header["feature_names"], "column names", d, different=False)
    if header["nesting"] is not None:
        for status in checked_texts(header["nesting"], "steps", r, different=False):
            require(status in _STATUSES, f"the status of a step is {quoted(status)}, not known")
    whiten = header["parameters"].get("whiten", False)
    checked_type(whiten, "parameter whiten", bool, "true or false")


def _check_preparation(preparation: dict[str, Any]) -> None:
    columns = preparation["columns"]
    require(isinstance(columns, list), "its columns are no list")
    checked_texts([column["name"] for column in columns], "columns")
    for column in columns:
        name, kind = quoted(column["name"]), column["kind"]
        require(kind in KINDS, f"its column {name} is of the kind {quoted(kind)}, not known")
        categories = checked_texts(column["categories"], f"categories of the column {name}")
        fits = (kind == "number") == (not categories)
        require(fits, f"the categories of its column {name} are not those of its kind")
        pool, fill = column.get("pool", ""), column.get("fill")
        checked_type(pool, f"pool of the column {name}", str, "text")
        if fill is not None and not isinstance(fill, str):
            checked_number(fill, f"fill of the column {name}", finite=True)
    checked_texts(preparation["ignored"], "columns that are left out")
    checked_texts(preparation["sensitive"], "sensitive columns")


_CERTIFICATE_ARRAYS = (
    *("multipliers", "measures", "change_from_pca", "violation_multipliers", "minmax_measures"),
)
_CERTIFICATE_TYPES = {
    **dict.fromkeys(("status", "goal", "measure", "stopped_by", "text"), str),
    **dict.fromkeys(("n_components", "n_dimensions"), int),
    **dict.fromkeys(("covers_mixtures", "pca_is_least", "is_nested"), bool),
}
"""Of its fields that are no arrays, those that are no float."""


_KINDS: list[type[Criterion]] = [*CRITERIA.values(), AtMost]
_CRITERIA = {kind.__name__: kind for kind in _KINDS}
"""The criteria that a file can name."""

_NESTING_ARRAYS = ("value", "free_value", "free_bound", "gap")

_VECTORS = (
    *("mean", "explained_variance", "explained_variance_ratio", "singular_values"),
    *("projection_factors", "retention", "means", "scales"),
    *("group_losses", "own_losses", "pca_losses", "variances"),
    *_CERTIFICATE_ARRAYS,
    *(f"nesting_{name}" for name in _NESTING_ARRAYS),
)
ARRAYS = {
    **dict.fromkeys(_VECTORS, (FLOATS, 1)),
    **dict.fromkeys(("components", "basis", "held_out", "pca_basis"), (FLOATS, 2)),
    "own_bases": (FLOATS, 3),
}
"""The arrays that a model file can have, with their types and numbers of axes."""


def arrays_of(fitted: FairPCA, preparation: Preparation | None) -> dict[str, Array]:
    """The arrays to keep, by the names that they have in the file."""
    solution, certificate, table = fitted.solution_, fitted.certificate_, fitted.group_table_
    arrays = {
        "components": fitted.components_,
        "mean": fitted.mean_,
        "explained_variance": fitted.explained_variance_,
        "explained_variance_ratio": fitted.explained_variance_ratio_,
        "singular_values": fitted.singular_values_,
        "projection_factors": fitted.projection_factors_,
        "basis": solution.basis,
        "retention": solution.retention,
        "group_losses": solution.group_losses,
        "own_losses": table.own_loss,
        "pca_losses": table.pca_loss,
        "variances": table.variance,
        "held_out": None if table.held_out is None else np.array(table.held_out),
        "means": None if preparation is None else preparation.means,
        "scales": None if preparation is None else preparation.scales,
        **{name: getattr(certificate, name) for name in _CERTIFICATE_ARRAYS},
    }
    nesting = getattr(fitted, "nesting_", None)
    arrays |= {f"nesting_{name}": getattr(nesting, name, None) for name in _NESTING_ARRAYS}
    return {name: array for name, array in arrays.items() if array is not None}


def baseline_arrays(baselines: Baselines) -> dict[str, Array]:
    """What is kept of the training rows' subspaces; the rest of them is in the file anyway."""
    return {"own_bases": baselines.own_bases, "pca_basis": baselines.pca_basis}


def header_of(fitted: FairPCA, preparation: Preparation | None) -> dict[str, Any]:
    """What is to be kept beside the arrays, as JSON has it."""
    parameters = fitted.get_params(deep=False)
    plain = {name: _kept(value) for name, value in parameters.items() if _can_be_kept(value)}
    certificate, solution, table = fitted.certificate_, fitted.solution_, fitted.group_table_
    names = getattr(fitted, "feature_names_in_", None)
    return {
        "parameters": plain,
        "left_out": {name: repr(value) for name, value in parameters.items() if name not in plain},
        "noise": _plain(fitted.noise_variance_),
        "feature_names": None if names is None else list(names),
        "preparation": None if preparation is None else _preparation_header(preparation),
        "groups": {
            "name": table.name,
            "labels": [_label(label) for label in table.labels],
            "names": None if table.group_names is None else list(table.group_names),
            "count": table.count.tolist(),
            "pca_is_best": table.pca_is_best,
        },
        "certificate": {
            field.name: _plain(getattr(certificate, field.name))
            for field in fields(Certificate)
            if field.name not in _CERTIFICATE_ARRAYS
        }
        | {"text": str(certificate)},
        "nesting": list(fitted.nesting_.status) if hasattr(fitted, "nesting_") else None,
        "solution": {
            "solver": solution.solver,
            "n_iter": int(solution.n_iter),
            "n_eigen": int(solution.n_eigen),
            "message": solution.message,
            "total_loss": _plain(solution.total_loss),
        },
    }


def _preparation_header(preparation: Preparation) -> dict[str, Any]:
    return {
        "columns": [asdict(column) for column in preparation.columns],
        "ignored": list(preparation.ignored),
        "sensitive": list(preparation.sensitive),
    }


def _is_plain(value: Any) -> bool:
    known = str | int | float | np.integer | np.floating | np.bool_
    return value is None or isinstance(value, known)


def _can_be_kept(value: Any) -> bool:
    """Whether a parameter is a number, a text or None, or a sequence or dictionary of them."""
    if isinstance(value, Criterion):
        known = type(value) in _CRITERIA.values()
        return known and all(map(_can_be_kept, value.get_params().values()))
    if isinstance(value, dict):
        return all(map(_is_plain_label, value)) and all(map(_can_be_kept, value.values()))
    if isinstance(value, list | tuple | np.ndarray):
        return all(map(_can_be_kept, value))
    return _is_plain(value)


def _is_plain_label(label: Hashable) -> bool:
    return all(map(_is_plain_label, label)) if isinstance(label, tuple) else _is_plain(label)


def _kept(value: Any) -> Any:
    """A parameter as JSON has it; what JSON has not is an object with one key."""
    if isinstance(value, Criterion):
        parameters = value.get_params()
        kept = {name: _kept(part) for name, part in parameters.items()}
        return {"criterion": type(value).__name__, "parameters": kept}
    if isinstance(value, dict):
        return {"items": [[_label(key), _kept(part)] for key, part in value.items()]}
    if isinstance(value, list | tuple | np.ndarray):
        return [_kept(part) for part in value]
    plain = _plain(value)
    return plain if isinstance(plain, str) == isinstance(value, str) else {"number": plain}


def _given(stored: Any) -> Any:
    """The parameter that was kept; sequences come back as lists."""
    if isinstance(stored, list):
        return [_given(part) for part in stored]
    if not isinstance(stored, dict):
        return stored
    if "criterion" in stored:
        require(stored["criterion"] in _CRITERIA, "its criterion is not known")
        parameters = {name: _given(part) for name, part in stored["parameters"].items()}
        return _CRITERIA[stored["criterion"]](**parameters)
    if "number" in stored:
        return float(stored["number"])
    return {_restored_label(key): _given(part) for key, part in stored["items"]}


def _plain(value: Any) -> Any:
    """A number, text or None as JSON has it: of Python's types, and infinite ones as text."""
    if isinstance(value, np.generic):
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _label(label: Hashable) -> Any:
    if isinstance(label, tuple):
        return [_label(part) for part in label]
    return _plain(label) if label is not None and _is_plain(label) else str(label)


def _restored_label(stored: Any) -> Hashable:
    return tuple(map(_restored_label, stored)) if isinstance(stored, list) else stored


def restored(
    header: dict[str, Any], arrays: dict[str, Array]
) -> tuple[FairPCA, Preparation | None, str]:
    """The estimator, the preparation and the certificate's words from what was kept."""
    check_parts(header, arrays)
    certificate, text = _restored_certificate(header["certificate"], arrays)
    fair = FairPCA(**{name: _given(value) for name, value in header["parameters"].items()})
    fair.components_, fair.mean_ = arrays["components"], arrays["mean"]
    fair.explained_variance_ = arrays["explained_variance"]
    fair.explained_variance_ratio_ = arrays["explained_variance_ratio"]
    fair.singular_values_ = arrays["singular_values"]
    fair.noise_variance_ = float(header["noise"])
    fair.projection_factors_ = arrays.get("projection_factors")
    fair.n_components_, fair.n_features_in_ = fair.components_.shape
    if header["feature_names"] is not None:
        fair.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    status = header["nesting"]
    if status is not None:
        columns = {name: arrays[f"nesting_{name}"] for name in _NESTING_ARRAYS}
        steps = tuple(map(str, status))
        fair.nesting_ = NestingTable(**columns, status=steps, measure=certificate.measure)
    stored = header["solution"]
    fair.certificate_, fair.shrinkage_ = certificate, certificate.shrinkage
    fair.solution_ = Solution(
        basis=arrays["basis"],
        group_losses=arrays["group_losses"],
        disparities=arrays["group_losses"] - arrays["own_losses"],
        certificate=certificate,
        retention=arrays.get("retention"),
        is_ordered=status is not None,
        **stored | {"total_loss": float(stored["total_loss"])},
    )
    groups = header["groups"]
    group_names = groups.get("names")
    fair.sensitive_names_ = tuple(group_names or ())
    fair.group_table_ = GroupTable(
        name=groups["name"],
        labels=tuple(map(_restored_label, groups["labels"])),
        count=np.array(groups["count"], dtype=np.int64),
        own_loss=arrays["own_losses"],
        pca_loss=arrays["pca_losses"],
        loss=arrays["group_losses"],
        variance=arrays["variances"],
        group_names=None if group_names is None else tuple(map(str, group_names)),
        pca_is_best=bool(groups["pca_is_best"]),
        held_out=None if "held_out" not in arrays else tuple(arrays["held_out"]),
    )
    fair.baselines_ = None
    if "own_bases" in arrays:
        table, bases = fair.group_table_, (arrays["own_bases"], arrays["pca_basis"])
        fair.baselines_ = Baselines(table.labels, table.count, *bases, mean=fair.mean_)
    preparation = _restored_preparation(header["preparation"], arrays)
    if preparation is not None:
        made, columns = len(preparation.feature_names), fair.n_features_in_
        require(made == columns, f"its columns become {made}, and its components are of {columns}")
    str(certificate)  # whose parts must make sentences
    return fair, preparation, text


def _restored_certificate(
    stored: dict[str, Any], arrays: dict[str, Array]
) -> tuple[Certificate, str]:
    numbers: dict[str, Any] = {}
    for name, value in stored.items():
        kind = _CERTIFICATE_TYPES.get(name, float)
        numbers[name] = None if value is None else kind(value)
    text = str(numbers.pop("text"))
    numbers |= {name: arrays.get(name) for name in _CERTIFICATE_ARRAYS}
    return Certificate(**numbers), text


def _restored_preparation(
    stored: dict[str, Any] | None, arrays: dict[str, Array]
) -> Preparation | None:
    if stored is None:
        return None
    columns = tuple(
        InputColumn(
            column["name"],
            column["kind"],
            tuple(column["categories"]),
            str(column.get("pool", "")),
            _restored_fill(column.get("fill")),
        )
        for column in stored["columns"]
    )
    return Preparation(
        columns,
        arrays["means"],
        arrays["scales"],
        tuple(stored["ignored"]),
        tuple(stored["sensitive"]),
    )


def _restored_fill(stored: Any) -> float | str | None:
    return stored if stored is None or isinstance(stored, str) else float(stored)


# Model files: a fitted FairPCA, with the preparation of its columns, in a file without pickle.
# A file (suffix ``.fairpca``) is an uncompressed zip archive. It holds ``header.json`` and one
# ``.npy`` file of float64 for each array, so ``numpy.load(path)["components"]`` reads one too.
# The header has these keys:
# =================
# ============================================================================ ``format``
# "fairpca model" ``version``        1; a reader refuses versions that are newer than its own
# ``fairpca``        the version of the library that wrote it ``checksums``      SHA-256 of each
# array's ``.npy`` file, by name, against damage ``parameters``     the parameters of `FairPCA`
# that are numbers, texts, None or lists of these; a                    dictionary is
# ``{"items": [[key, value], …]}``, an infinite number                    ``{"number": "inf"}``
# ``left_out``       those that are objects, such as a solver, as text; they are not restored
# ``noise``          the mean variance in the directions that were left out ``feature_names``
# names of the columns that `FairPCA` was fitted on, or null ``preparation``    ``columns``
# (name, kind, categories, pool and fill of each), ``ignored`` and
# ``sensitive`` of a `Preparation`, or null ``groups``         ``name``, ``labels``, ``count``,
# ``names`` (of the sensitive columns, or null)                    and ``pca_is_best`` of the
# table of groups ``certificate``    the numbers of the certificate that are no arrays, and its
# ``text`` ``nesting``        the status of each step of a nested subspace, or null ``solution``
# ``solver``, ``n_iter``, ``n_eigen``, ``message`` and ``total_loss`` =================
# ============================================================================
# The arrays are ``components``, ``mean``, ``explained_variance``, ``explained_variance_ratio``,
# ``singular_values``, ``basis``, ``group_losses``, ``own_losses``, ``pca_losses``,
# ``variances``, ``measures``, ``change_from_pca``, ``multipliers`` and, where there are any,
# ``projection_factors``, ``retention``, ``violation_multipliers``, ``minmax_measures``,
# ``held_out`` (of the table), ``means`` and ``scales`` (of the preparation), ``own_bases`` and
# ``pca_basis`` (of the `Baselines`), ``nesting_value``, ``nesting_free_value``,
# ``nesting_free_bound`` and ``nesting_gap`` (of a `NestingTable`). Infinite numbers are texts
# in the header. A solver's `history` is not kept. Groups whose labels are neither text nor
# numbers come back as text.

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
    fairpca.model_file.load_model : Reads one.

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
    fairpca.model_file.load_model : Reads the file.

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
    if isinstance(fitted.criterion, Criterion) and type(fitted.criterion) not in _CRITERIA.values():
        raise ValueError(
            f"A model file cannot keep the criterion {type(fitted.criterion).__name__}, which is "
            "not one of fairpca: save the estimator with joblib.dump instead."
        )
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
