"""Passes of stochastic Pareto descent over the rows, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import assert_all_finite

from fairpca._linalg.backends import NUMPY, device_library, to_host
from fairpca._linalg.device import DeviceBackend
from fairpca._linalg.types import Array
from fairpca.base import PrincipalAxes, axes_of_products
from fairpca.data import check_dimension
from fairpca.group_table import GroupTable
from fairpca.groups import (
    Codes,
    Groups,
    chosen_columns,
    encode_groups,
    named_columns,
    sorted_labels,
    warn_of_dropped,
    without_columns,
)
from fairpca.moments import GroupMoments, MomentSum
from fairpca.stochastic.batches import (
    ArrayBatches,
    Batch,
    StreamBatches,
    as_double,
    rows_at_once,
)
from fairpca.stochastic.tracked import LossSums, SubspaceLosses, TrackedSubspaces
from fairpca.validation import check_device_rows, check_rows, check_same_index

_LARGEST = 1e60
"""Values beyond this are refused: fourth powers, and products of these, occur."""

NOTE = (
    "Own PCA and PCA are those that the same mini-batches led to: a disparity may be too small by "
    "what an own PCA lacks."
)


ESTIMATES = "All losses are estimates by the rows so far, and by the subspaces as they moved."

ORDINARY_PCA = "use scikit-learn's IncrementalPCA if ordinary PCA is wanted"

MANY = "With many groups hardly any step improves all objectives: take FairPCA, or fewer groups."

IS_PCA = (
    "No subspace fairer than that of ordinary PCA was found, so that one is returned: take more "
    f"passes. {MANY}"
)

WORSE = (
    "The worst-off group is worse off than with ordinary PCA, although groups differ less: take "
    f"more passes. {MANY}"
)


@dataclass(frozen=True, eq=False)
class Run:
    """How the passes went.

    Attributes
    ----------
    history : list of dict
        For each pass the norm of the direction by held-out rows, its square, and the standard error
        of the square; empty where none were held out.
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
        if number == 2 and batches.is_uneven:
            # Which groups came first would decide where it ends.
            spaces.restart()
        spaces.average, spaces.n_averaged = None, 0
        for batch, kinds in one_pass():
            spaces.take(batch, batches.shares, kinds)
            if averaging:
                spaces.average_in()
        said = f"pass {number} of at most {max_passes}"
        if parts := batches.parts:
            square, error = spaces.held_out_norm(parts, batches.shares)
            norm = float(np.sqrt(max(square, 0.0)))
            history.append({"pass": number, "norm": norm, "square": square, "error": error})
            said += f": direction {norm:.3g} by held-out rows"
            in_a_row = in_a_row + 1 if square <= max(tol**2, error) and tol > 0.0 else 0
        if verbose:
            print(said, flush=True)
        if in_a_row == n_iter_no_change:
            break
    return Run(history, number, in_a_row == n_iter_no_change)


@dataclass(frozen=True, eq=False)
class FoundSubspaces:
    """The subspaces, as an estimator shows them; `own` and `pca` have components as rows.

    `is_pca` says whether PCA's is the fairest that was found, and is shown.
    """

    axes: PrincipalAxes
    table: GroupTable
    own: dict[Hashable, Array]
    pca: Array
    is_pca: bool


def summed_losses(
    spaces: TrackedSubspaces, k: int, shares: Array, blocks: Iterable[tuple[int, Any]]
) -> SubspaceLosses:
    """What the groups lose in all subspaces, by a pass over blocks of their rows."""
    fair, pca = spaces.result(), spaces.pca.basis
    bases = [(fair, pca, spaces.own[i].basis) for i in range(k)]
    sums = LossSums(bases, spaces.center(shares), spaces.backend)
    for i, block in blocks:
        sums.add(i, block)
    return sums.losses()


def found_subspaces(
    spaces: TrackedSubspaces,
    losses: SubspaceLosses,
    labels: Sequence[Hashable],
    names: tuple[str, ...] | None,
    note: str = NOTE,
) -> FoundSubspaces:
    """The subspaces and the table; groups are shown in the order of their labels."""
    r, host, inner = spaces.r, spaces.backend.host, losses.inner
    weights = losses.count / losses.count.sum()
    variance = np.maximum(losses.variance, 0.0)
    leading = _leading(np.tensordot(weights, [own[1] for own in inner], 1), r)
    kept = np.array([np.trace(own[0]) for own in inner])
    pca_kept = np.array([np.trace(leading.T @ own[1] @ leading) for own in inner])
    own_kept = np.array([np.linalg.eigvalsh(own[2])[-r:].sum() for own in inner])
    pca_basis = host(spaces.pca.basis) @ leading
    basis, along = np.array(host(spaces.result())), [own[0] for own in inner]
    # Ordinary PCA has the least total loss, so where it is fairer too, it is better in all.
    is_pca = bool(np.ptp(own_kept - kept) > np.ptp(own_kept - pca_kept))
    if is_pca:
        basis, along = pca_basis, [leading.T @ own[1] @ leading for own in inner]
    order = [list(labels).index(label) for label in sorted_labels(list(labels))]
    table = GroupTable(
        name="fair",
        labels=tuple(labels[i] for i in order),
        count=losses.count[order],
        own_loss=np.maximum(variance - own_kept, 0.0)[order],
        pca_loss=np.maximum(variance - pca_kept, 0.0)[order],
        loss=np.maximum(variance - (pca_kept if is_pca else kept), 0.0)[order],
        variance=variance[order],
        group_names=names,
        notes=(note,),
    )
    total, n = float(weights @ variance), int(losses.count.sum())
    mixed = np.tensordot(weights, along, 1)
    axes = axes_of_products(basis, mixed, total, losses.mean, n)
    own = {labels[i]: (host(spaces.own[i].basis) @ _leading(inner[i][2], r)).T for i in order}
    return FoundSubspaces(axes, table, own, pca_basis.T, is_pca)


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
    check_same_index(X, sensitive_features=sensitive_features)
    names = named_columns(X, sensitive_features)
    if names:
        sensitive_features = chosen_columns(X, names)
    if not estimator.keep_sensitive:
        X = without_columns(X, names) if reset else estimator._without_sensitive(X)
    if device_library(X) is not None:
        known = None if reset else estimator.n_features_in_
        name = type(estimator).__name__
        rows = values = check_device_rows(X, name, known, at_least=least_rows, finite=True)
        estimator.n_features_in_ = rows.shape[1]
    else:
        rows = check_rows(X, estimator, reset=reset, ensure_min_samples=least_rows)
        values = rows.data if hasattr(rows, "tocsr") else rows
        assert_all_finite(values, estimator_name=type(estimator).__name__, input_name="X")
    check_dimension(estimator.n_components, rows.shape[1])
    if max(float(values.max()), -float(values.min())) > _LARGEST if len(values) else False:
        raise ValueError(f"X has values beyond {_LARGEST:g}: rescale its columns.")
    labels = (sensitive_features, rows.shape[0], estimator.missing_labels)
    found = encode_groups(*labels, may_be_empty=True)
    if reset:
        estimator.sensitive_names_ = found.names or ()
    return rows, found


def check_library(rows: Any, spaces: TrackedSubspaces) -> None:
    """Raise ValueError for rows that do not lie where the subspaces do."""
    on_device = isinstance(spaces.backend, DeviceBackend)
    if (device_library(rows) is not None) != on_device:
        raise ValueError(
            "Rows must all be of the same library: those before were "
            f"{'on a device' if on_device else 'of NumPy'}."
        )


def random_spaces(estimator: Any, rows: Any) -> TrackedSubspaces:
    """Subspaces to begin with, where the rows are."""
    how = (estimator.step, estimator.step_size, estimator.variance_reduction)
    rng = np.random.default_rng(estimator.random_state or 0)
    on_device = device_library(rows) is not None
    backend = DeviceBackend(as_double(rows[:1])) if on_device else NUMPY
    return TrackedSubspaces(rows.shape[1], int(estimator.n_components), rng, backend, how)


def chunk_of(
    estimator: Any,
    X: Any,
    sensitive_features: Any,
    stream: StreamBatches,
    spaces: TrackedSubspaces,
) -> tuple[Any, Codes]:
    """The checked rows of a chunk, and the positions of their groups among those of the stream."""
    if stream.grouped != (sensitive_features is not None):
        raise ValueError(
            "sensitive_features must be given with all rows or with none, and earlier ones had "
            f"{'them' if stream.grouped else 'none'}."
        )
    if spaces.r != estimator.n_components:
        raise ValueError(
            f"n_components={estimator.n_components} differs from that of earlier calls, "
            f"{spaces.r}: clone the estimator to begin with another."
        )
    rows, found = checked_rows(estimator, X, sensitive_features, reset=False)
    check_library(rows, spaces)
    if stream.is_first_pass:
        stream.n_dropped += found.n_dropped
    rows, codes = labelled_rows(rows, found)
    codes, n_new = stream.codes(found.labels, codes)
    spaces.add_groups(n_new)
    return rows, codes


def check_labels(labels: Sequence[Hashable], n_dropped: int = 0, n_rows: int = 0) -> None:
    """Raise ValueError if no row has a label; warn of those that have none."""
    if not labels:
        raise ValueError("sensitive_features is missing in all rows: there are no groups.")
    if n_dropped:
        warn_of_dropped(n_dropped, n_rows)


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
