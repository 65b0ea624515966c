"""Model files: a fitted FairPCA, with the preparation of its columns, in a file without pickle.

A file (suffix ``.fairpca``) is an uncompressed zip archive. It holds ``header.json`` and one
``.npy`` file of float64 for each array, so ``numpy.load(path)["components"]`` reads one too.
The header has these keys:

=================  ============================================================================
``format``         "fairpca model"
``version``        1; a reader refuses versions that are newer than its own
``fairpca``        the version of the library that wrote it
``checksums``      SHA-256 of each array's ``.npy`` file, by name, against damage
``parameters``     the parameters of `FairPCA` that are numbers, texts or None
``left_out``       those that are objects, such as a solver, as text; they are not restored
``feature_names``  names of the columns that `FairPCA` was fitted on, or null
``preparation``    ``columns`` (name, kind, categories of each), ``ignored`` and ``sensitive``
                   of a `Preparation`, or null
``groups``         ``name``, ``labels`` and ``count`` of the table of groups
``certificate``    the numbers of the certificate that are no arrays, and its ``text``
``solution``       ``solver``, ``n_iter``, ``n_eigen``, ``message`` and ``total_loss``
=================  ============================================================================

The arrays are ``components``, ``mean``, ``explained_variance``, ``explained_variance_ratio``,
``basis``, ``group_losses``, ``own_losses``, ``pca_losses``, ``disparities``, ``multipliers`` and,
where there are any, ``shrinkage``, ``shares``, ``spread_multipliers``, ``minmax_disparities``,
``means`` and ``scales`` (of the preparation). Infinite numbers are texts in the header. A solver's
`history` is not kept. Groups whose labels are neither text nor numbers come back as text.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

import fairpca
from fairpca._atomic import replacing
from fairpca._estimator import FairPCA
from fairpca._model_parts import arrays_of, header_of, restored
from fairpca.linalg import Array
from fairpca.preparation import Preparation
from fairpca.table import GroupTable

FORMAT = "fairpca model"
VERSION = 1

_HEADER = "header.json"
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,  # what zipfile says of compression that it does not know
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)
"""What reading a damaged file can raise."""


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
        return self.reduction.transform(self.prepare(table))

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

        Returns
        -------
        array of shape (n_rows, n_outputs)
            A column for each of `Preparation.feature_names`; those of categories hold fractions.
        """
        restored = self.fair_pca.inverse_transform(reduced)
        return restored if self.preparation is None else self.preparation.undo_scaling(restored)


def save_model(
    fitted: FairPCA, path: str | Path, *, preparation: Preparation | None = None
) -> None:
    """Write a fitted FairPCA to a file that holds no code.

    The file is written beside `path` and then takes its place, so that it is whole or not there.

    Parameters
    ----------
    fitted : FairPCA
        What to keep.
    path : str or Path
        Where to, by custom with the suffix ``.fairpca``.
    preparation : Preparation, default=None
        What made the columns it was fitted on. None takes them as they are: by name, if the fit
        was on a data frame.

    Examples
    --------
    See `load_model`.
    """
    if not isinstance(fitted, FairPCA):
        raise TypeError(f"Only a FairPCA can be saved, not a {type(fitted).__name__}.")
    check_is_fitted(fitted)
    names = getattr(fitted, "feature_names_in_", None)
    if preparation is None and names is not None:
        preparation = Preparation.of_numbers(names)
    if preparation is not None and len(preparation.means) != fitted.n_features_in_:
        raise ValueError(
            f"The preparation makes {len(preparation.means)} columns, and the FairPCA was fitted "
            f"on {fitted.n_features_in_}."
        )
    packed = {name: _packed(array) for name, array in arrays_of(fitted, preparation).items()}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "fairpca": fairpca.__version__,
        "checksums": {name: _checksum(data) for name, data in packed.items()},
        **header_of(fitted, preparation),
    }
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_HEADER, json.dumps(header, indent=1, allow_nan=False))
        for name, data in packed.items():
            archive.writestr(f"{name}.npy", data)


def load_model(path: str | Path) -> FairModel:
    """Read what `save_model` wrote.

    Nothing in the file is run. The checksums guard against damage, not against someone who
    changes the numbers on purpose.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    FairModel

    Raises
    ------
    ValueError
        If this is no model file, or a damaged one, or one of a newer version of the format.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.model_file import load_model, save_model
    >>> from fairpca.preparation import Preparation
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
    shown = repr(str(path))
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise ValueError(f"{shown} is no fairpca model file.")
        try:
            # Read without unpacking, so that no small file can become a huge one.
            members = _members(file)
            header = json.loads(members[_HEADER])
            known = header["format"] == FORMAT
            version = int(header["version"]) if known else 0
        except KeyError:
            raise ValueError(f"{shown} is no fairpca model file.") from None
        except _DAMAGE as error:
            raise ValueError(f"{shown} is damaged or cut short, and cannot be read.") from error
    if not known:
        raise ValueError(f"{shown} is no fairpca model file.")
    if version > VERSION:
        raise ValueError(
            f"{shown} has version {version} of the format, and this fairpca reads up to {VERSION}: "
            "install a newer fairpca."
        )
    try:
        arrays = {}
        for name, checksum in header["checksums"].items():
            data = members[f"{name}.npy"]
            if _checksum(data) != checksum:
                raise ValueError(f"the array {name} is not the one that was written")
            arrays[name] = _unpacked(data)
        return FairModel(*restored(header, arrays))
    except _DAMAGE as error:
        raise ValueError(f"{shown} is damaged: its parts do not fit together.") from error


def _members(file: Any) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
            raise KeyError("compressed")
        return {info.filename: archive.read(info) for info in infos}


def _packed(array: ArrayLike) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array, dtype="<f8"), allow_pickle=False)
    return buffer.getvalue()


def _unpacked(data: bytes) -> Array:
    array: Array = np.load(io.BytesIO(data), allow_pickle=False)
    if array.dtype != np.float64:
        raise ValueError("an array is not of float64")
    return array


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
