"""StochasticFairPCA: Pareto descent on mini-batches, where covariances do not fit into memory.

None of the groups' matrices A_i is ever formed. What is kept are the images of the bases under
them, (d, r) each, and every mini-batch B corrects these (STORM: Cutkosky and Orabona, 2019)::

    Y  <-  (1 - b) Y  +  B (U - (1 - b) U_before)

Without the second part of the bracket this is the average over recent batches, which lags behind
the basis; with it, Y follows the basis as it moves, and its noise falls with the number of rows
drawn. That treats two biases at once. The direction in which all objectives fall depends on the
gradients in a way that is not linear, so that of noisy gradients is wrong on average, not only in
single steps; with tracked gradients it is right in the limit (Fernando et al., "Mitigating gradient
bias in multi-objective learning", 2023). And the penalty of a difference of disparities has the
difference times its slope as its gradient: both of the same rows, their noises would multiply.

Steps are in units of the power method, whatever the scale of the rows, and as long as the noise
allows: with noise n in the image of a batch, relative to the image, the noise that corrections
gather stays below what they correct where steps are at most ``sqrt(b) / n``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from fairpca._linalg.backends import NUMPY, Backend, device_library, namespace
from fairpca._linalg.dense import BLOCK_VALUES, direction_of
from fairpca._linalg.device import DeviceBackend
from fairpca._linalg.types import NEGLIGIBLE, Array
from fairpca.base import LinearReduction, axes_of_products
from fairpca.certificate import NotCertified
from fairpca.data import prepare_rows, warn_of_no_groups
from fairpca.group_table import GroupTable
from fairpca.groups import (
    Codes,
    Groups,
    check_number_of_groups,
    refuse_ambiguous,
    sorted_labels,
    warn_of_dropped,
)
from fairpca.moments import GroupMoments, MomentSum
from fairpca.objectives import FEW_GROUPS, adjacent_differences
from fairpca.validation import check_flag, check_seed, check_whole_number

_LARGEST = 1e60
"""Values beyond this are refused: fourth powers, and products of these, occur."""

_FORGETTING = 2.0
"""b is this many times a batch's part of the rows drawn so far: what is older than half of them
counts by a quarter."""

_MORE_COLUMNS = 5
"""Columns of the groups' own bases beyond r: the further the next eigenvalue, the faster."""

_NOISE_EVERY = 8
"""The noise of batches is measured once in this many steps."""

_NOISE_MEMORY = 0.8
"""Weight of what was measured before."""

_FLAT = 1e-6
"""Part of the mean variance along a basis that is added where a basis is divided by variances."""

_DEPENDENT = 1e-6
"""Eigenvalue or singular value, relative to the largest, of vectors that depend on each other."""

_NOTE = (
    "Own PCA and PCA are those that the same mini-batches led to: a disparity may be too small by "
    "what an own PCA lacks."
)

_ORDINARY_PCA = "use scikit-learn's IncrementalPCA if ordinary PCA is wanted"

_IS_PCA = (
    "No subspace fairer than that of ordinary PCA was found, so that one is returned: take more "
    "passes, or FairPCA."
)

_WORSE = (
    "The worst-off group is worse off than with ordinary PCA, although groups differ less: take "
    "more passes, or FairPCA."
)


class StochasticFairPCA(LinearReduction):
    """Fair PCA by stochastic Pareto descent, for data whose covariances do not fit into memory.

    Mini-batches of rows move three kinds of subspaces at once: the fair one, along the direction in
    which the total loss and all differences of disparities fall (Kamani et al., equation 17), or,
    with more than five groups, the total loss and the sum of the squared differences; each group's
    own, from which its disparity is measured; and that of ordinary PCA, to compare with. What is
    kept is a few arrays of shape (d, r) for each group, never one of shape (d, d).

    Up to a few thousand columns `FairPCA` is the better choice: it reads the rows once, finds the
    optimum and proves it. This estimator is for hundreds of thousands.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    batch_size : int, default=1024
        Rows of a mini-batch: of an array, half in proportion to the groups, half in equal parts.
    n_passes : int, default=10
        Passes over the rows, before a last one in which losses are summed; a pass draws as many
        rows as there are.
    whiten : bool, default=False
        As for `FairPCA`.
    keep_sensitive : bool, default=False
        Whether columns of X that `sensitive_features` names stay among the features.
    missing_labels : {"error", "group", "drop"}, default="error"
        As for `FairPCA`.
    random_state : int or None, default=None
        Seed; None is a fixed seed too.

    Attributes
    ----------
    components_, mean_, explained_variance_, explained_variance_ratio_, n_components_
        As for `FairPCA`, as are its other attributes.
    group_table_ : GroupTable
        As for `FairPCA`, but own PCA and PCA are those found by the same steps.
    certificate_ : NotCertified
        That nothing is proven about the subspace, and why.
    own_components_ : dict of arrays of shape (n_components_, n_features_in_)
        Each group's own subspace, as learnt along the way.
    pca_components_ : array of shape (n_components_, n_features_in_)
        The same for all rows.
    n_steps_ : int
        Steps that were taken.

    See Also
    --------
    fairpca.FairPCA : The optimum with a proof, where covariances fit into memory.
    fairpca.ParetoDescent : The same with exact gradients.

    Notes
    -----
    Noisy gradients make the direction of multi-objective descent wrong on average. The remedy is to
    track the groups' images; studies/stochastic.md measures it. Rows have no weights.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import StochasticFairPCA
    >>> from fairpca.datasets import load_adult
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult(as_frame=False)
    >>> X = StandardScaler().fit_transform(adult.data)
    >>> fair = StochasticFairPCA(5, random_state=0)
    >>> fair = fair.fit(X, sensitive_features=adult.sensitive_features)
    >>> table = fair.group_table_
    >>> bool(np.ptp(table.disparity) < 0.5 * np.ptp(table.pca_disparity))
    True
    """

    group_table_: GroupTable
    certificate_: NotCertified
    own_components_: dict[Hashable, Array]
    pca_components_: Array
    n_steps_: int

    def __init__(
        self,
        n_components: int = 2,
        *,
        batch_size: int = 1024,
        n_passes: int = 10,
        whiten: bool = False,
        keep_sensitive: bool = False,
        missing_labels: str = "error",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.batch_size = batch_size
        self.n_passes = n_passes
        self.whiten = whiten
        self.keep_sensitive = keep_sensitive
        self.missing_labels = missing_labels
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> StochasticFairPCA:
        """Find the fair subspace of rows in memory.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Numeric and without missing values. Or an array of PyTorch or CuPy, whose rows, and all
            bases, stay on its device.
        y : ignored
        sensitive_features : str, list of str or array-like of shape (n_samples,) or (n_samples, m)
            The group of each row; several columns make groups of their intersections. Or names of
            columns of X.

        Returns
        -------
        self : StochasticFairPCA
        """
        self._check_parameters()
        rows, groups, n_dropped = self._prepare_rows(X, sensitive_features)
        warn_of_dropped(n_dropped, rows.shape[0] + n_dropped)
        if sensitive_features is None:
            warn_of_no_groups(y, _ORDINARY_PCA)
        rng = np.random.default_rng(self.random_state or 0)
        self._learn(ArrayBatches(rows, groups, self.batch_size, rng))
        return self

    def fit_batches(self, batches: Iterable[tuple[Any, Any]]) -> StochasticFairPCA:
        """Find the fair subspace of rows that come in chunks, and can come again.

        Parameters
        ----------
        batches : iterable of pairs
            Rows, as for `fit`, and the sensitive features of these rows. It is gone through once
            before the first pass, to count groups, and once in each pass, so it must not be an
            iterator that is used up: a list, or an object whose ``__iter__`` opens files again
            (`fairpca.sources.RowBatches` does). Chunks need not fit together with others in memory,
            and should hold several mini-batches each. Rows had better be mixed: where groups come
            one after another, those that a mini-batch lacks take part by a sample of their rows,
            which is less exact.

        Returns
        -------
        self : StochasticFairPCA
        """
        self._check_parameters()
        if iter(batches) is batches:
            raise ValueError(
                "batches can be gone through only once, and several passes are needed: pass a list "
                "or an object that opens the data again."
            )
        items: Iterable[Any] = batches
        first: list[bool] = []  # whether there are groups, once that is known

        def chunks() -> Iterator[tuple[Any, Groups, int]]:
            for item in items:
                if not (isinstance(item, tuple | list) and len(item) == 2):
                    raise ValueError(
                        "batches must give pairs of rows and their sensitive features, not a "
                        f"{type(item).__name__}."
                    )
                X, sensitive_features = item
                is_first, grouped = not first, sensitive_features is not None
                if is_first:
                    first.append(grouped)
                    if not grouped:
                        warn_of_no_groups(None, _ORDINARY_PCA)
                if grouped != first[0]:
                    raise ValueError(
                        "sensitive_features must be given with all rows or with none, and earlier "
                        f"ones had {'them' if first[0] else 'none'}."
                    )
                yield self._prepare_rows(X, sensitive_features, reset=is_first, is_part=True)

        stream = StreamBatches(chunks, self.batch_size, self.random_state or 0)
        warn_of_dropped(stream.n_dropped, stream.n_dropped + int(stream.counts.sum()))
        self._learn(stream)
        return self

    def _check_parameters(self) -> None:
        for name in ("n_components", "batch_size", "n_passes"):
            check_whole_number(name, getattr(self, name))
        for name in ("whiten", "keep_sensitive"):
            check_flag(name, getattr(self, name))
        check_seed(self.random_state)

    def _prepare_rows(
        self, X: Any, sensitive_features: Any, **how: bool
    ) -> tuple[Any, Groups, int]:
        """Rows, their groups, and how many are left out; `how` is as for `prepare_rows`."""
        rows, groups, n_dropped = prepare_rows(
            X, sensitive_features, self, n_components=self.n_components, in_place=True, **how
        )
        values = rows.data if hasattr(rows, "tocsr") else rows
        if len(values) and max(float(values.max()), -float(values.min())) > _LARGEST:
            raise ValueError(f"X has values beyond {_LARGEST:g}: rescale its columns.")
        return rows, groups, n_dropped

    def _learn(self, batches: ArrayBatches | StreamBatches) -> None:
        """Pass over the batches, and set what is fitted."""
        on_device = device_library(batches.rows) is not None
        backend = DeviceBackend(_as_double(batches.rows[:1])) if on_device else NUMPY
        d, k = batches.rows.shape[1], len(batches.labels)
        rng = np.random.default_rng(self.random_state or 0)
        spaces = TrackedSubspaces(d, int(self.n_components), batches.counts, rng, backend)
        for _ in range(self.n_passes):
            for blocks in batches.one_pass():
                spaces.take(blocks)
        is_pca = self._set_found(spaces, batches)
        self.n_steps_, table = spaces.n_steps, self.group_table_
        self.certificate_ = NotCertified(
            "a proof takes the covariances of all groups, as FairPCA forms them "
            f"({8 * k * d * d / 1e9:,.1f} GB)"
        )
        if k > 1 and (is_pca or table.disparity.max() > table.pca_disparity.max()):
            warnings.warn(_IS_PCA if is_pca else _WORSE, ConvergenceWarning, stacklevel=3)

    def _set_found(self, spaces: TrackedSubspaces, batches: ArrayBatches | StreamBatches) -> bool:
        """Set what is fitted; returns whether it is PCA's subspace, for want of a fairer one."""
        mean, variance, inner = summed_losses(spaces, batches.blocks())
        r, host, weights, labels = spaces.r, spaces.backend.host, spaces.shares, batches.labels
        fair, pca, own = (list(parts) for parts in zip(*inner, strict=True))
        leading = _leading(np.tensordot(weights, pca, 1), r)
        basis, pca_basis = np.array(host(spaces.fair.basis)), host(spaces.pca.basis) @ leading
        pca = [leading.T @ part @ leading for part in pca]
        kept, pca_kept = (np.trace(parts, axis1=1, axis2=2) for parts in (fair, pca))
        own_kept = np.linalg.eigvalsh(own)[:, -r:].sum(axis=1)
        # Ordinary PCA has the least total loss, so where it is fairer too, it is better in all.
        is_pca = bool(np.ptp(own_kept - kept) > np.ptp(own_kept - pca_kept))
        if is_pca:
            basis, fair, kept = pca_basis, pca, pca_kept
        # Groups are shown in the order of their labels.
        order = [list(labels).index(label) for label in sorted_labels(list(labels))]
        variance = np.maximum(variance, 0.0)
        self.group_table_ = GroupTable(
            name="fair",
            labels=tuple(labels[i] for i in order),
            count=spaces.counts[order],
            own_loss=np.maximum(variance - own_kept, 0.0)[order],
            pca_loss=np.maximum(variance - pca_kept, 0.0)[order],
            loss=np.maximum(variance - kept, 0.0)[order],
            variance=variance[order],
            group_names=self.sensitive_names_ or None,
            notes=(_NOTE,),
        )
        total, n = float(weights @ variance), int(spaces.counts.sum())
        self._set_axes(axes_of_products(basis, np.tensordot(weights, fair, 1), total, mean, n))
        self.own_components_ = {
            labels[i]: (host(spaces.own[i].basis) @ _leading(own[i], r)).T for i in order
        }
        self.pca_components_ = pca_basis.T
        return is_pca


def _leading(inner: Array, r: int) -> Array:
    """Eigenvectors of the r largest eigenvalues, as columns."""
    vectors: Array = np.linalg.eigh((inner + inner.T) / 2.0)[1][:, ::-1][:, :r]
    return vectors


# Mini-batches: a block of rows of each group.


class ArrayBatches:
    """Batches of rows in memory.

    Half of a batch is drawn in proportion to the groups, for the total loss, and half in equal
    parts, because what is said of small groups would be noise otherwise. Each group is drawn
    without replacement, in an order that is new each time it has been through.

    Parameters
    ----------
    rows : array, CSR matrix or device array of shape (n, d)
    groups : Groups
        Of the rows.
    size : int
        Rows of a batch.
    rng : numpy.random.Generator
    """

    def __init__(self, rows: Any, groups: Groups, size: int, rng: np.random.Generator) -> None:
        self.rows, self._codes, self._rng = rows, groups.codes, rng
        self.labels, k = groups.labels, len(groups.labels)
        self.counts = np.bincount(groups.codes, minlength=k)
        self._orders = [rng.permutation(np.flatnonzero(groups.codes == i)) for i in range(k)]
        sizes = np.rint(size * (self.counts / self.counts.sum() + 1.0 / k) / 2.0).astype(int)
        self._sizes, self._at = np.clip(sizes, 1, self.counts), np.zeros(k, dtype=int)

    def one_pass(self) -> Iterator[list[Any]]:
        """Batches with as many rows in all as there are."""
        for _ in range(max(round(self.counts.sum() / self._sizes.sum()), 1)):
            yield [self._block(i) for i in range(len(self.counts))]

    def _block(self, i: int) -> Any:
        size, order = self._sizes[i], self._orders[i]
        if self._at[i] + size > len(order):
            self._orders[i] = order = self._rng.permutation(order)
            self._at[i] = 0
        chosen = order[self._at[i] : self._at[i] + size]
        self._at[i] += size
        return _as_double(self.rows[chosen])

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """All rows, in blocks of one group each."""
        return _group_blocks(self.rows, self._codes)


class StreamBatches:
    """Batches of chunks of rows as they come; what is kept between chunks is bounded.

    Parameters
    ----------
    chunks : callable
        Begins the stream: gives rows, their groups, and how many rows were left out, of each chunk.
    size : int
        Rows of a batch.
    seed : int

    Attributes
    ----------
    labels, counts, n_dropped
        The groups of all chunks, their rows, and how many rows were left out.
    rows : array, CSR matrix or device array
        Some of the rows.
    """

    def __init__(
        self, chunks: Callable[[], Iterable[tuple[Any, Groups, int]]], size: int, seed: int
    ) -> None:
        self._chunks, self._size, self._seed, self._passes = chunks, size, seed, 0
        rng, self.n_dropped = np.random.default_rng(seed), 0
        samples: dict[Hashable, _RowSample] = {}
        for rows, groups, n_dropped in chunks():
            self.n_dropped += n_dropped
            for i, label in enumerate(groups.labels):
                own = np.flatnonzero(groups.codes == i)
                samples.setdefault(label, _RowSample()).add(rows, own, size, rng)
            check_number_of_groups(len(samples))
        if not samples:
            raise ValueError(
                "There are no batches, or sensitive_features is missing in all rows: there are no "
                "groups."
            )
        refuse_ambiguous(samples)
        self.labels, self._samples = tuple(samples), list(samples.values())
        self.rows = self._samples[0].rows
        self.counts = np.array([sample.count for sample in self._samples])

    def one_pass(self) -> Iterator[list[Any]]:
        """Batches of all chunks, each of which is mixed."""
        self._passes += 1
        for number, (rows, codes) in enumerate(self._coded()):
            rng = np.random.default_rng([self._seed, number, self._passes])
            order = rng.permutation(len(codes))
            for start in range(0, len(order), self._size):
                some = order[start : start + self._size]
                own = (some[codes[some] == i] for i in range(len(self.labels)))
                yield [
                    _as_double(rows[chosen]) if len(chosen) else self._sampled(i, rng)
                    for i, chosen in enumerate(own)
                ]

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """All rows, in blocks of one group each."""
        for rows, codes in self._coded():
            yield from _group_blocks(rows, codes)

    def _coded(self) -> Iterator[tuple[Any, Codes]]:
        """Rows of each chunk, and the positions of their groups among all of the stream."""
        places = {label: place for place, label in enumerate(self.labels)}
        counts = dict.fromkeys(self.labels, 0)
        for rows, groups, _ in self._chunks():
            for i, label in enumerate(groups.labels):
                counts[label] = counts.get(label, 0) + int((groups.codes == i).sum())
            if places.keys() != counts.keys():
                break
            yield rows, np.array([places[label] for label in groups.labels], int)[groups.codes]
        before = dict(zip(self.labels, self.counts.tolist(), strict=True))
        for label, count in counts.items():
            if count != before.get(label):
                raise ValueError(
                    f"The group {label!r} has other rows than before: batches must give the same "
                    "rows each time that they are gone through."
                )

    def _sampled(self, i: int, rng: np.random.Generator) -> Any:
        """Some rows of a group that a batch has no rows of."""
        rows = self._samples[i].rows
        n = max(self._size // len(self.labels), 1)
        return _as_double(rows[rng.permutation(rows.shape[0])[:n]])


@dataclass
class _RowSample:
    """How many rows a group has, and some of them at random: those with the smallest numbers."""

    count: int = 0
    rows: Any = None
    numbers: Array = field(default_factory=lambda: np.zeros(0))

    def add(self, rows: Any, own: NDArray[np.intp], most: int, rng: np.random.Generator) -> None:
        """Take further rows."""
        self.count += len(own)
        numbers, most = rng.random(len(own)), min(most, _rows_at_once(rows))
        nearest = np.argsort(numbers)[:most]
        new, numbers = rows[own[nearest]], np.append(self.numbers, numbers[nearest])
        chosen = np.argsort(numbers)[:most]
        self.rows = (new if self.rows is None else _stacked([self.rows, new]))[chosen]
        self.numbers = numbers[chosen]


def _group_blocks(rows: Any, codes: Codes) -> Iterator[tuple[int, Any]]:
    """Rows in blocks of one group each, in double precision."""
    step = _rows_at_once(rows)
    for i in np.unique(codes):
        own = np.flatnonzero(codes == i)
        for start in range(0, len(own), step):
            yield int(i), _as_double(rows[own[start : start + step]])


def _rows_at_once(rows: Any) -> int:
    """How many rows a block may have."""
    per_row = rows.nnz / max(rows.shape[0], 1) if hasattr(rows, "tocsr") else rows.shape[1]
    return max(int(BLOCK_VALUES // max(per_row, 1)), 1)


def _as_double(rows: Any) -> Any:
    """Rows in double precision."""
    return rows.double() if hasattr(rows, "double") else rows.astype(np.float64, copy=False)


def _stacked(rows: list[Any]) -> Any:
    """Rows one below another."""
    if hasattr(rows[0], "tocsr"):
        return scipy.sparse.vstack(rows, format="csr")
    on_device = device_library(rows[0]) is not None
    return namespace(rows[0]).concat(rows) if on_device else np.concatenate(rows)


# Subspaces that move while rows stream by.


class CentredRows:
    """Rows minus a centre, without a centred copy where they are sparse."""

    def __init__(self, rows: Any, center: Any) -> None:
        self.n = rows.shape[0]
        self._is_sparse = hasattr(rows, "tocsr")
        self._rows: Any = rows if self._is_sparse else rows - center
        self._center: Any = center

    def scores(self, basis: Any) -> Any:
        """Coordinates along the columns of a basis; (n, r)."""
        scores = self._rows @ basis
        return scores - self._center @ basis if self._is_sparse else scores

    def image(self, basis: Any) -> Any:
        """Mean of ``x x^T basis``."""
        scores = self.scores(basis) / self.n
        image = self._rows.T @ scores
        if self._is_sparse:
            image -= np.outer(self._center, scores.sum(axis=0))
        return image

    def squares(self) -> Any:
        """Squared length of each row; (n,)."""
        if not self._is_sparse:
            return (self._rows * self._rows).sum(1)
        lengths = np.asarray(self._rows.multiply(self._rows).sum(axis=1)).ravel()
        return lengths - 2.0 * (self._rows @ self._center) + self._center @ self._center


class MovingBasis:
    """A basis, and its images under matrices of which only batches of rows are seen.

    Parameters
    ----------
    basis : array of shape (d, r)
        Where to begin.
    counts : integer array
        Rows of which each matrix is the mean of ``x x^T``.
    """

    def __init__(self, basis: Any, counts: NDArray[np.int64]) -> None:
        self.basis = self.before = basis
        self._counts = counts
        self.images: list[Any] = [None] * len(counts)
        self.drawn, self.shares, self.noise = np.zeros((3, len(counts)))
        self.noise += 1.0

    def follow(self, i: int, rows: CentredRows) -> None:
        """Correct the image under matrix i by a batch of its rows."""
        self.drawn[i] += rows.n
        whole = rows.n == self._counts[i]
        share = 1.0 if whole else min(_FORGETTING * rows.n / self.drawn[i], 1.0)
        self.shares[i] = share
        if self.images[i] is None or share >= 1.0:
            self.images[i] = rows.image(self.basis)
        else:
            new = rows.image(self.basis - (1.0 - share) * self.before)
            new += (1.0 - share) * self.images[i]
            self.images[i] = new

    def measure_noise(self, i: int, rows: CentredRows) -> None:
        """How far the image of a batch is from the tracked one, relative to that, on average."""
        scores, size = rows.scores(self.basis), float((self.images[i] * self.images[i]).sum())
        rowwise = float((rows.squares() * (scores * scores).sum(1)).sum()) / rows.n
        noise = np.sqrt(max(rowwise / size - 1.0, 0.0) / rows.n) if size > 0.0 else 0.0
        noise = _NOISE_MEMORY * self.noise[i] + (1.0 - _NOISE_MEMORY) * noise
        self.noise[i] = 0.0 if rows.n == self._counts[i] else noise

    def move(self, basis: Any) -> None:
        """Go to another basis."""
        self.before, self.basis = self.basis, basis


class TrackedSubspaces:
    """The fair subspace, that of PCA and the groups' own, learnt together from mini-batches.

    Parameters
    ----------
    d, r : int
        Numbers of columns and of components.
    counts : integer array of shape (k,)
        Rows of each group.
    rng : numpy.random.Generator
        For random beginnings.
    backend : Backend
        The library in which the bases live.
    """

    def __init__(
        self,
        d: int,
        r: int,
        counts: NDArray[np.int64],
        rng: np.random.Generator,
        backend: Backend = NUMPY,
    ) -> None:
        self.d, self.r, self.width, self.backend = d, r, min(r + _MORE_COLUMNS, d), backend
        self.counts, self.shares = counts, counts / counts.sum()

        def random_basis(width: int) -> Any:
            found = np.linalg.qr(rng.standard_normal((d, width)))[0]
            return backend.put(np.ascontiguousarray(found))

        self.fair = MovingBasis(random_basis(r), counts)
        self.pca = MovingBasis(random_basis(self.width), counts)
        self.own = [
            MovingBasis(random_basis(self.width), counts[i : i + 1]) for i in range(len(counts))
        ]
        self._means: list[Any] = [None] * len(counts)
        self._drawn, self.n_steps = np.zeros(len(counts)), 0

    @property
    def center(self) -> Any:
        """Mean of all rows, as far as they have been drawn."""
        return sum(share * mean for share, mean in zip(self.shares, self._means, strict=True))

    def take(self, blocks: Sequence[Any]) -> None:
        """Learn from a batch: one block of rows for each group."""
        measures = self.n_steps < _NOISE_EVERY or self.n_steps % _NOISE_EVERY == 0
        for i, block in enumerate(blocks):
            self._drawn[i] += block.shape[0]
            part, mean, last = block.shape[0] / self._drawn[i], _block_mean(block), self._means[i]
            self._means[i] = mean if last is None else last + part * (mean - last)
        center = self.center
        centred = [CentredRows(block, center) for block in blocks]
        followed = [(self.fair, i, rows) for i, rows in enumerate(centred)]
        followed += [(own, 0, rows) for own, rows in zip(self.own, centred, strict=False)]
        for i, rows in enumerate(centred):
            self.pca.follow(i, rows)
        for moving, i, rows in followed:
            moving.follow(i, rows)
            if measures:
                moving.measure_noise(i, rows)
        self.n_steps += 1
        self._move_fair()
        for own in self.own:
            self._power_step(own, own.images[0], self._length(own.noise, own.shares))
        noise = np.sqrt(np.square(self.shares) @ np.square(self.fair.noise))
        length = self._length(np.array([noise]), np.array([self.shares @ self.pca.shares]))
        self._power_step(self.pca, _combination(self.shares, self.pca.images), length)

    def _move_fair(self) -> None:
        put, host, basis = self.backend.put, self.backend.host, self.fair.basis
        inner = [host(basis.T @ image) for image in self.fair.images]
        turn = put(_inverse_power(np.tensordot(self.shares, inner, 1), 0.5))
        # The metric in which the gradient of the total loss is a step of the power method.
        tangents = [
            (image - basis @ put(part)) @ turn
            for image, part in zip(self.fair.images, inner, strict=True)
        ]
        kept = np.array([np.trace(part) for part in inner])
        products = np.array([[float((a * b).sum()) for b in tangents] for a in tangents])
        length = self._length(self.fair.noise, self.fair.shares)
        step = noisy_step(products, self.own_gains() - kept, self.shares, length)
        self.fair.move(self._orthonormal(basis + _combination(step, tangents) @ turn))

    def _length(self, noise: Array, parts: Array) -> float:
        """Length of a step, in units of the power method."""
        limits = np.sqrt(parts) / np.maximum(noise, np.finfo(float).tiny)
        return float(min(1.0, limits.min()))

    def own_gains(self) -> Array:
        """What each group keeps in its own subspace, as far as it is known; (k,)."""
        inner = [self.backend.host(moving.basis.T @ moving.images[0]) for moving in self.own]
        values = np.linalg.eigvalsh([(part + part.T) / 2.0 for part in inner])
        return np.asarray(values[:, -self.r :].sum(axis=1))

    def _power_step(self, moving: MovingBasis, image: Any, length: float) -> None:
        """A step of the power method towards the leading subspace, of this length."""
        inner = self.backend.host(moving.basis.T @ image)
        tangent = image - moving.basis @ self.backend.put(inner)
        step = tangent @ self.backend.put(_inverse_power(inner, 1.0, _FLAT))
        moving.move(self._orthonormal(moving.basis + length * step))

    def _orthonormal(self, matrix: Any) -> Any:
        """The nearest matrix with orthonormal columns, from the products of its columns."""
        values, axes = np.linalg.eigh(self.backend.host(matrix.T @ matrix))
        if not values[0] > _DEPENDENT * values[-1]:
            return self.backend.qr(matrix)[0]
        return matrix @ self.backend.put(np.ascontiguousarray((axes * values**-0.5) @ axes.T))


def noisy_step(products: Array, disparities: Array, shares: Array, step_size: float) -> Array:
    """The step of Pareto descent where the groups' matrices are known by batches of rows only.

    All gradients of the paper's objectives are combinations of the k images ``A_i U``, so the
    direction in which all objectives fall follows from the k x k products of these images' tangent
    parts. It costs the same for any number of columns, and for arrays on any device. Differences of
    disparities within reach of a step are *held* at zero, as in `AdaptiveDescent`, and a Newton
    step leads back to zero: their signs are noise there, and following them would make the basis
    tremble.

    Parameters
    ----------
    products : array of shape (k, k)
        Inner products of the tangent parts of the images ``A_i U``, in a metric in which the step
        of one, along minus half the gradient of the total loss, is one of the power method.
    disparities : array of shape (k,)
        What each group loses beyond its own best subspace.
    shares : array of shape (k,)
        Weights of the groups in the total loss.
    step_size : float
        Length of the step, in those of the power method.

    Returns
    -------
    array of shape (k,)
        Coefficients of the tangent images.
    """
    values, axes = np.linalg.eigh((products + products.T) / 2.0)
    values = np.where(values > NEGLIGIBLE * max(values[-1], 0.0), values, 0.0)
    # The images in few coordinates: rows with the same products.
    images: Array = axes * np.sqrt(values)
    if len(shares) <= FEW_GROUPS:
        matrix = adjacent_differences(disparities)
    else:  # the gradient of the sum of all squared differences, by their root: one objective
        centred = disparities - disparities.mean()
        size = float(np.linalg.norm(centred))
        matrix = centred[None] / size if size > 0.0 else np.zeros((1, len(shares)))
    differences = matrix @ disparities
    total, slopes = -(shares @ images), -2.0 * (matrix @ images)
    sizes = np.sqrt(np.einsum("ij,ij->i", slopes, slopes))
    length = step_size * float(np.linalg.norm(total))
    held = np.abs(differences) <= length * sizes
    pulls = np.vstack([total, slopes])
    pulls = pulls[np.concatenate([[True], ~held])]
    free, back = pulls, np.zeros(len(shares))
    if held.any():
        left, levels, right = np.linalg.svd(slopes[held], full_matrices=False)
        some = levels > _DEPENDENT * levels[0]
        right = right[some]
        free = pulls - (pulls @ right.T) @ right
        back = -((left[:, some].T @ differences[held]) / levels[some]) @ right
        # Newton's step is only right nearby.
        back *= min(1.0, length / max(float(np.linalg.norm(back)), np.finfo(float).tiny))
    zero = np.full(len(pulls), np.sqrt(NEGLIGIBLE * max(float(values[-1]), 0.0)))
    direction, _, _ = direction_of(pulls, free, normalize=True, zero=zero)
    # From the few coordinates to coefficients of the images; what has no length has none.
    scale = np.divide(1.0, np.sqrt(values), out=np.zeros(len(values)), where=values > 0.0)
    return np.asarray(((back + length * direction) * scale) @ axes.T)


def _block_mean(block: Any) -> Any:
    """Mean of the rows of a block; (d,)."""
    mean = block.mean(0)
    return np.asarray(mean).ravel() if hasattr(block, "tocsr") else mean


def _combination(coefficients: Array, arrays: Sequence[Any]) -> Any:
    return sum(float(c) * array for c, array in zip(coefficients, arrays, strict=True))


def _inverse_power(matrix: Array, power: float, flat: float = NEGLIGIBLE) -> Array:
    """A negative power of a symmetric matrix whose eigenvalues are made positive.

    Without any positive one there is nothing to be divided by, and it is the identity.
    """
    values, axes = np.linalg.eigh((matrix + matrix.T) / 2.0)
    level = flat * float(np.maximum(values, 0.0).mean())
    if not level > 0.0:
        return np.eye(len(matrix))
    return np.ascontiguousarray((axes * (np.maximum(values, 0.0) + level) ** -power) @ axes.T)


def summed_losses(
    spaces: TrackedSubspaces, blocks: Iterable[tuple[int, Any]]
) -> tuple[Array, Array, list[tuple[Array, ...]]]:
    """Sums for what groups lose, by a pass over all rows, without covariances.

    Coordinates along the bases are rows with few columns, so their moments are kept.

    Parameters
    ----------
    spaces : TrackedSubspaces
    blocks : iterable of pairs
        All rows, in blocks of one group each.

    Returns
    -------
    mean : array of shape (d,)
        Mean of all rows.
    variance : array of shape (k,)
        Mean squared distance of each group's rows from it.
    inner : list of k tuples of three arrays
        For each group the mean of ``s s^T`` for the coordinates s of its centred rows along the
        fair basis, that of PCA and its own.
    """
    host, center = spaces.backend.host, spaces.center
    bases = [(spaces.fair.basis, spaces.pca.basis, own.basis) for own in spaces.own]
    k, total = len(bases), MomentSum()
    offsets, squares = np.zeros((k, spaces.d)), np.zeros(k)
    for i, block in blocks:
        rows = CentredRows(block, center)
        scores = np.hstack([host(rows.scores(basis)) for basis in bases[i]])
        total.add(GroupMoments.from_groups(scores, Groups((i,), np.zeros(rows.n, np.int8))))
        offsets[i] += rows.n * host(_block_mean(block) - center)
        squares[i] += float(rows.squares().sum())
    moments = total.moments()
    offsets /= moments.count[:, None]
    # So far all is about where the centre was thought to be; the mean of all rows is known now.
    shift = moments.count @ offsets / moments.n_rows
    variance = squares / moments.count - 2.0 * (offsets @ shift) + shift @ shift
    parts = np.split(np.arange(moments.n_features), np.cumsum([spaces.r, spaces.width]))
    inner = []
    for i, own in enumerate(bases):
        along = moments.mean[i] - np.hstack([host(basis).T @ shift for basis in own])
        products = moments.scatter[i] / moments.count[i] + np.outer(along, along)
        inner.append(tuple(products[np.ix_(part, part)] for part in parts))
    return host(center) + shift, variance, inner


__all__ = ["StochasticFairPCA"]
