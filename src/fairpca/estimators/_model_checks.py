"""What the header and the arrays of a model file must be, before anything is made of them."""

from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.criteria import FINDINGS
from fairpca.files.checks import (
    check_finite,
    check_positive,
    checked_number,
    checked_texts,
    checked_type,
    checked_whole,
    quoted,
    require,
)
from fairpca.measures import BY_NOUN
from fairpca.tables.preparation import KINDS, InputColumn

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
        fits = InputColumn(column["name"], kind, tuple(categories), pool, fill).is_consistent
        require(fits, f"what its column {name} is filled in with is none of its values")
    checked_texts(preparation["ignored"], "columns that are left out")
    checked_texts(preparation["sensitive"], "sensitive columns")
