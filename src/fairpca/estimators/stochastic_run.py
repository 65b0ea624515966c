"""Passes of stochastic Pareto descent over the rows, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import assert_all_finite

from fairpca._linalg.backends import device_library, to_host
from fairpca._linalg.types import Array
from fairpca._rows.checks import check_device_rows, check_rows
from fairpca._rows.groups import Codes, Groups, encode_groups, warn_of_dropped
from fairpca._rows.named import chosen_columns, named_columns, without_columns
from fairpca.estimators.base import PrincipalAxes, axes_of_products
from fairpca.estimators.gather import check_dimension
from fairpca.estimators.row_batches import (
    ArrayBatches,
    Batch,
    StreamBatches,
    as_double,
    rows_at_once,
)
from fairpca.estimators.subspace_losses import LossSums
from fairpca.estimators.tracked import TrackedSubspaces
from fairpca.moments import GroupMoments, MomentSum
from fairpca.table import GroupTable

_NOTE = (
    "Own PCA and PCA are those that the same mini-batches led to: a disparity may be too small by "
    "what an own PCA lacks."
)


@dataclass(frozen=True, eq=False)
class Run:
    """How the passes went.

    Attributes
    ----------
    history : list of dict
        For each pass the norm of the direction by held-out rows, and the standard error of its
        square; empty where none were held out.
    n_passes : int
        Passes that were taken.
    converged : bool
        Whether they ended because the direction is short.
    """

    history: list[dict[str, float]]
    n_passes: int
    converged: bool

    @property
    def message(self) -> str:
        """Why it ended."""
        if self.converged:
            return f"stopped after {self.n_passes} passes: held-out rows show no better direction"
        return f"stopped after max_passes={self.n_passes} passes"

    @property
    def direction(self) -> str:
        """What is known of the direction at the end."""
        if not self.history:
            return ""
        last = self.history[-1]
        return (
            "By rows that were held out, a step of the power method would still turn the subspace "
            f"by {last['norm']:.2g} towards what is better for all objectives; "
            f"{np.sqrt(last['error']):.2g} could be chance."
        )


def descend(
    spaces: TrackedSubspaces,
    batches: ArrayBatches | StreamBatches,
    one_pass: Callable[[], Iterable[Batch]],
    *,
    max_passes: int,
    tol: float,
    n_iter_no_change: int,
    averaging: bool = False,
    verbose: bool = False,
) -> Run:
    """Pass over the rows until held-out rows show no direction that improves all objectives."""
    history: list[dict[str, float]] = []
    in_a_row = 0
    for number in range(1, max_passes + 1):
        spaces.average, spaces.n_averaged = None, 0
        for batch, whole in one_pass():
            spaces.take(batch, batches.shares, whole)
            if averaging:
                spaces.average_in()
        said = f"pass {number} of at most {max_passes}"
        if parts := batches.parts:
            square, error = spaces.held_out_norm(parts, batches.shares)
            norm = float(np.sqrt(max(square, 0.0)))
            history.append({"pass": number, "norm": norm, "error": error})
            said += f": direction {norm:.3g} by held-out rows"
            in_a_row = in_a_row + 1 if square <= max(tol**2, error) and tol > 0.0 else 0
        if verbose:
            print(said, flush=True)
        if in_a_row == n_iter_no_change:
            break
    return Run(history, number, in_a_row == n_iter_no_change)


@dataclass(frozen=True, eq=False)
class FoundSubspaces:
    """The subspaces, as an estimator shows them; `own` and `pca` have components as rows."""

    axes: PrincipalAxes
    table: GroupTable
    own: dict[Hashable, Array]
    pca: Array


def found_subspaces(
    spaces: TrackedSubspaces,
    labels: Sequence[Hashable],
    groups: Sequence[int],
    shares: Array,
    *,
    blocks: Iterable[tuple[int, Any]],
    names: tuple[str, ...] | None,
    notes: tuple[str, ...] = (),
) -> FoundSubspaces:
    """What the groups lose in all subspaces, by a pass over blocks of their rows.

    `groups` are those that the blocks have rows of, in the order in which they are shown; labels
    and shares are those of all.
    """
    r, host = spaces.r, spaces.backend.host
    bases = {i: (spaces.result(), spaces.pca.basis, spaces.own[i].basis) for i in groups}
    place = {i: at for at, i in enumerate(groups)}
    sums = LossSums([bases[i] for i in groups], spaces.center(shares), spaces.backend)
    for i, block in blocks:
        sums.add(place[i], block)
    found = sums.losses()
    weights = found.count / found.count.sum()
    fair, pca = (np.tensordot(weights, [own[j] for own in found.inner], 1) for j in (0, 1))
    leading = _leading(pca, r)
    own_turns = [_leading(own[2], r) for own in found.inner]
    own_kept = [np.linalg.eigvalsh(own[2])[-r:].sum() for own in found.inner]
    pca_kept = [float(np.trace(leading.T @ own[1] @ leading)) for own in found.inner]
    variance = np.maximum(found.variance, 0.0)
    table = GroupTable(
        name="fair",
        labels=tuple(labels[i] for i in groups),
        count=found.count,
        own_loss=np.maximum(variance - own_kept, 0.0),
        pca_loss=np.maximum(variance - pca_kept, 0.0),
        loss=np.maximum(variance - [float(np.trace(own[0])) for own in found.inner], 0.0),
        variance=variance,
        group_names=names,
        notes=(_NOTE, *notes),
    )
    total, n = float(weights @ variance), int(found.count.sum())
    axes = axes_of_products(np.array(host(spaces.result())), fair, total, found.mean, n)
    turned = zip(groups, own_turns, strict=True)
    own = {labels[i]: (host(spaces.own[i].basis) @ turn).T for i, turn in turned}
    return FoundSubspaces(axes, table, own, (host(spaces.pca.basis) @ leading).T)


def group_blocks(rows: Any, codes: Codes, k: int) -> Iterator[tuple[int, Any]]:
    """Rows in blocks of one group each, in double precision."""
    step = rows_at_once(rows)
    for i in range(k):
        own = np.flatnonzero(codes == i)
        for start in range(0, len(own), step):
            yield i, as_double(rows[own[start : start + step]])


def summed(
    blocks: Iterable[tuple[int, Any]], labels: Sequence[Hashable], total: MomentSum
) -> Iterator[tuple[int, Any]]:
    """The same blocks, whose moments are added up on the way."""
    for i, block in blocks:
        host = to_host(block) if device_library(block) is not None else block
        total.add(GroupMoments.from_codes(host, np.zeros(host.shape[0], np.int8), (labels[i],)))
        yield i, block


def pair(item: Any) -> tuple[Any, Any]:
    """Rows and sensitive features of a chunk."""
    if not (isinstance(item, tuple | list) and len(item) == 2):
        raise ValueError(
            "batches must give pairs of rows and their sensitive features, not a "
            f"{type(item).__name__}."
        )
    return item[0], item[1]


def checked_rows(
    estimator: Any, X: Any, sensitive_features: Any, *, reset: bool, least_rows: int = 1
) -> tuple[Any, Groups]:
    """Rows, finite and with the estimator's columns, and their groups."""
    names = named_columns(X, sensitive_features)
    if names:
        sensitive_features = chosen_columns(X, names)
    if not estimator.keep_sensitive:
        X = without_columns(X, names if reset else estimator.sensitive_names_)
    if device_library(X) is not None:
        known = None if reset else estimator.n_features_in_
        name = type(estimator).__name__
        rows = check_device_rows(X, name, known, at_least=least_rows, finite=True)
        estimator.n_features_in_ = rows.shape[1]
    else:
        rows = check_rows(X, estimator, reset=reset, ensure_min_samples=least_rows)
        values = rows.data if hasattr(rows, "tocsr") else rows
        assert_all_finite(values, estimator_name=type(estimator).__name__, input_name="X")
    check_dimension(estimator.n_components, rows.shape[1])
    labels = (sensitive_features, rows.shape[0], estimator.missing_labels)
    found = encode_groups(*labels, may_be_empty=True)
    if reset:
        estimator.sensitive_names_ = found.names or ()
    if found.n_dropped:
        warn_of_dropped(found.n_dropped, rows.shape[0])
    return rows, found


def labelled_rows(rows: Any, found: Groups) -> tuple[Any, Codes]:
    """The rows that have labels, and their codes."""
    if found.kept is None:
        return rows, found.codes
    some = np.flatnonzero(found.kept)
    return rows[some], found.codes[some]


def _leading(inner: Array, r: int) -> Array:
    """Eigenvectors of the r largest eigenvalues, as columns."""
    vectors: Array = np.linalg.eigh((inner + inner.T) / 2.0)[1][:, ::-1][:, :r]
    return vectors
