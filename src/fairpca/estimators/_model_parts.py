"""What a model file keeps of a fitted FairPCA and its preparation, and how they come back."""

import math
from collections.abc import Hashable
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.certificate import Certificate
from fairpca.criteria import AtMost, Balanced, Criterion, Equal, MinMax
from fairpca.estimators._model_checks import check_parts
from fairpca.estimators.baselines import Baselines
from fairpca.estimators.fair_pca import FairPCA
from fairpca.estimators.nesting import NestingTable
from fairpca.files.archive import FLOATS
from fairpca.files.checks import require
from fairpca.group_table import GroupTable
from fairpca.solution import Solution
from fairpca.tables.preparation import InputColumn, Preparation

_CERTIFICATE_ARRAYS = (
    *("multipliers", "measures", "change_from_pca", "violation_multipliers", "minmax_measures"),
)
_CERTIFICATE_TYPES = {
    **dict.fromkeys(("status", "goal", "measure", "stopped_by", "text"), str),
    **dict.fromkeys(("n_components", "n_dimensions"), int),
    **dict.fromkeys(("covers_mixtures", "pca_is_least", "is_nested"), bool),
}
"""Of its fields that are no arrays, those that are no float."""


_CRITERIA = {kind.__name__: kind for kind in (MinMax, Equal, AtMost, Balanced)}
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
