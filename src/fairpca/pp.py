"""For AnnData and scanpy: fair PCA of cells by batch, type or donor, in the slots of ``sc.pp.pca``.

>>> import fairpca
>>> fairpca.pp.pca(adata, key="batch")  # doctest: +SKIP
>>> sc.pp.neighbors(adata, use_rep="X_pca_fair")  # doctest: +SKIP

An AnnData brings all that is needed: neither anndata nor scanpy is imported here. Install
``fairpca[anndata]`` to read ``.h5ad`` files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca.certificate import Certificate
from fairpca.fair_pca import FairPCA, checked_choices
from fairpca.group_table import GroupTable
from fairpca.inspection.audit import Loadings
from fairpca.inspection.audit import audit as audit_rows
from fairpca.moments import GroupMoments, MomentSum
from fairpca.text import MOST_NAMES, listed
from fairpca.validation import check_whole_number

_SCANPY = {"X_pca": ("PCs", "pca")}
"""Where scanpy keeps loadings and parameters of a representation with another name than these."""

_DEFAULT_MASK = "highly_variable"


def pca(
    adata: Any,
    key: str | Sequence[str],
    n_comps: int = 50,
    *,
    mask_var: str | NDArray[np.bool_] | None = "highly_variable",
    layer: str | None = None,
    key_added: str = "X_pca_fair",
    dtype: Any = "float32",
    chunk_size: int = 5000,
    **fair_options: Any,
) -> None:
    """Fair PCA of an AnnData by the groups in a column of ``adata.obs``.

    The counterpart of ``sc.pp.pca``: it writes the same slots, so that whatever takes a
    representation can use it: ``sc.pp.neighbors(adata, use_rep="X_pca_fair")``. Sparse matrices
    stay sparse; their columns are centred implicitly. A backed AnnData is read in blocks.

    Parameters
    ----------
    adata : AnnData
        Cells with normalised, log-transformed counts, as for ``sc.pp.pca``.
    key : str or sequence of str
        Column of ``adata.obs`` with the groups, such as the batch or the cell type; several make
        groups of their intersections, unless ``groups=`` asks for others.
    n_comps : int, default=50
        Number of components.
    mask_var : str, boolean array of shape (n_vars,) or None, default="highly_variable"
        The genes to use, or the column of ``adata.var`` that says which. None takes all, and so
        does the default where there is no such column.
    layer : str, default=None
        The layer to use in place of ``adata.X``.
    key_added : str, default="X_pca_fair"
        Name of the slots.
    dtype : str or dtype, default="float32"
        Of the representation.
    chunk_size : int, default=5000
        Cells that are read at once from a backed AnnData.
    **fair_options
        Parameters of `FairPCA`, such as ``criterion="minmax"`` or ``missing_labels="drop"``.

    Returns
    -------
    None
        With ``key_added="X_pca_fair"`` it sets

        - ``.obsm["X_pca_fair"]``: the cells in the fair subspace, (n_obs, n_comps).
        - ``.varm["X_pca_fair"]``: the loadings, (n_vars, n_comps); zero for genes that are not
          used.
        - ``.uns["X_pca_fair"]``: ``variance`` and ``variance_ratio`` of the components, as from
          scanpy; ``params``; ``mean``, which is subtracted from cells, (n_vars,); ``groups``, the
          table of groups as a data frame; and ``certificate``, a dict whose ``text`` is the
          certificate in words.

    See Also
    --------
    fairpca.FairPCA : What is fitted.
    fairpca.pp.audit : Judges a representation that is there.

    Notes
    -----
    New cells have the same representation as ``(X - mean) @ loadings``.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from fairpca import pp
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> adata = AnnData(X)
    >>> adata.obs["batch"] = ["first"] * 100 + ["second"] * 200
    >>> pp.pca(adata, key="batch", n_comps=2)
    >>> adata.obsm["X_pca_fair"].shape, adata.varm["X_pca_fair"].shape
    ((300, 2), (6, 2))
    >>> adata.uns["X_pca_fair"]["certificate"]["status"]
    'optimal'
    """
    check_whole_number("n_comps", n_comps)
    check_whole_number("chunk_size", chunk_size)
    groups = _column(adata, key)
    used, name = _genes(adata, mask_var)
    fair = FairPCA(n_comps, **fair_options)
    if getattr(adata, "isbacked", False) and layer is None:
        given: dict[str, Any] = {"missing_labels": fair.missing_labels}
        given["folds"] = checked_choices(fair)[1].estimates_noise and fair.groups is not None
        total = MomentSum()
        for cells, block in _blocks(adata, used, chunk_size):
            total.add(GroupMoments.from_rows(block, groups.iloc[cells], **given))
        fair.fit_moments(total.moments())
        reduced = np.empty((len(groups), n_comps), dtype=dtype)
        for cells, block in _blocks(adata, used, chunk_size):
            reduced[cells] = fair.transform(block)
    else:
        rows = _rows(adata, used, layer)
        fair.fit(rows, sensitive_features=groups)
        reduced = fair.transform(rows).astype(dtype, copy=False)
    loadings, mean = np.zeros((adata.n_vars, n_comps)), np.zeros(adata.n_vars)
    loadings[used], mean[used] = fair.components_.T, fair.mean_
    params = {
        "zero_center": True,
        "mask_var": name,
        "use_highly_variable": isinstance(name, str) and name == _DEFAULT_MASK,
        "key": key if isinstance(key, str) else list(key),
        "criterion": str(fair.criterion),
    }
    table = fair.group_table_.to_frame()  # with texts as its index, which a file can hold
    table.index = fair.group_table_.group_texts()
    table.index.name = "group"
    adata.obsm[key_added], adata.varm[key_added] = reduced, loadings
    adata.uns[key_added] = {
        "params": params if layer is None else {**params, "layer": layer},
        "variance": fair.explained_variance_,
        "variance_ratio": fair.explained_variance_ratio_,
        "mean": mean,
        "groups": table,
        "certificate": _plain(fair.certificate_),
    }


def audit(
    adata: Any,
    key: str | Sequence[str],
    use_rep: str = "X_pca",
    *,
    adata_train: Any = None,
    missing_labels: str = "error",
    groups: str | None = None,
    n_resamples: int = 200,
    random_state: int | None = None,
) -> GroupTable:
    """Show what each group of cells loses with the loadings of an AnnData.

    Parameters
    ----------
    adata : AnnData
        The cells to judge by. A backed one is read into memory.
    key : str or sequence of str
        Column of ``adata.obs`` with the groups; several make intersections.
    use_rep : str, default="X_pca"
        The representation whose loadings are judged: those in ``varm["PCs"]`` for "X_pca", else
        those in ``varm[use_rep]``. Corrected coordinates, such as Harmony's, have no loadings, and
        cannot be judged by what is lost of the expression.
    adata_train : AnnData, default=None
        The cells that the loadings were found with, where `adata` has others, of the same genes.
        Loadings, mean and the baselines come from there, and nothing is fitted to `adata`.
    missing_labels, groups, n_resamples, random_state : as for `fairpca.audit`
        How groups are made, and how intervals are found.

    Returns
    -------
    GroupTable

    See Also
    --------
    fairpca.audit : The same for rows.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from fairpca import pp
    >>> from sklearn.decomposition import PCA
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> adata = AnnData(X)
    >>> adata.obs["batch"] = ["first"] * 100 + ["second"] * 200
    >>> adata.varm["PCs"] = PCA(2).fit(X).components_.T  # as sc.pp.pca does
    >>> table = pp.audit(adata, key="batch", n_resamples=0)
    >>> bool(np.allclose(table.loss, table.pca_loss))
    True
    """
    source = adata if adata_train is None else adata_train
    in_varm, in_uns = _SCANPY.get(use_rep, (use_rep, use_rep))
    if in_varm not in source.varm:
        raise ValueError(
            f"There are no loadings of {use_rep!r} in varm[{in_varm!r}], without which nothing is "
            "known of what is lost. Coordinates that were corrected afterwards, as by Harmony, "
            f"have none; varm has {listed(list(source.varm), MOST_NAMES) or 'nothing'}."
        )
    if adata_train is not None and list(adata.var.index) != list(adata_train.var.index):
        raise ValueError(
            "adata and adata_train have different genes: subset both to the same, in one order."
        )
    loadings = np.asarray(source.varm[in_varm], dtype=np.float64)
    about = source.uns.get(in_uns, {})
    layer = about.get("params", {}).get("layer")
    used: NDArray[np.bool_] = np.any(loadings, axis=1)  # what is left out by a mask has no loadings
    rows = _rows(adata, used, layer)
    trained = rows if adata_train is None else _rows(adata_train, used, layer)
    if not about.get("params", {}).get("zero_center", True):
        mean = np.zeros(int(used.sum()))
    elif "mean" in about:
        mean = np.asarray(about["mean"])[used]
    else:
        mean = np.ones(trained.shape[0]) @ trained / trained.shape[0]  # float64, of sparse rows too
    more: dict[str, Any] = {}
    if adata_train is not None:
        more = {"X_train": trained, "sensitive_train": _column(adata_train, key)}
    return audit_rows(
        Loadings(loadings[used].T, mean),
        rows,
        sensitive_features=_column(adata, key),
        missing_labels=missing_labels,
        groups=groups,
        n_resamples=n_resamples,
        random_state=random_state,
        **more,
    )


def _column(adata: Any, key: str | Sequence[str]) -> Any:
    """The groups of cells, as a series or a data frame."""
    names = [key] if isinstance(key, str) else list(key)
    absent = [name for name in names if name not in adata.obs.columns]
    if absent or not names:
        raise ValueError(
            f"adata.obs has no column {listed(absent)}; its columns are "
            f"{listed(list(adata.obs.columns), MOST_NAMES)}."
        )
    return adata.obs[names[0] if len(names) == 1 else names]


def _genes(adata: Any, mask_var: Any) -> tuple[NDArray[np.bool_], Any]:
    """Which genes are used, and how that is recorded."""
    named, columns = isinstance(mask_var, str), adata.var.columns
    if mask_var is None or (named and mask_var == _DEFAULT_MASK and mask_var not in columns):
        return np.ones(adata.n_vars, dtype=bool), None
    if named and mask_var not in columns:
        raise ValueError(
            f"adata.var has no column {mask_var!r} for mask_var; its columns are "
            f"{listed(list(columns), MOST_NAMES)}."
        )
    mask = np.asarray(adata.var[mask_var] if named else mask_var)
    if mask.dtype != bool or mask.shape != (adata.n_vars,) or not mask.any():
        raise ValueError(
            f"mask_var must be True or False for each of {adata.n_vars} genes, and True for some."
        )
    return mask, mask_var if named else mask


def _rows(adata: Any, used: NDArray[np.bool_], layer: str | None) -> Any:
    """The matrix of some genes, in memory."""
    rows = adata.X if layer is None else adata.layers[layer]
    if not (scipy.sparse.issparse(rows) or isinstance(rows, np.ndarray)) and adata.isbacked:
        rows = rows[:]
    return rows if used.all() else rows[:, np.flatnonzero(used)]


def _blocks(adata: Any, used: NDArray[np.bool_], chunk_size: int) -> Iterator[tuple[slice, Any]]:
    """Blocks of a backed matrix, and which cells these are."""
    for block, start, stop in adata.chunked_X(chunk_size):
        yield slice(start, stop), block if used.all() else block[:, np.flatnonzero(used)]


def _plain(certificate: Certificate) -> dict[str, Any]:
    """The numbers and words of a certificate that a file can hold."""
    values = {field.name: getattr(certificate, field.name) for field in fields(certificate)}
    known = {name: value for name, value in values.items() if value is not None}
    return {**known, "text": str(certificate)}
