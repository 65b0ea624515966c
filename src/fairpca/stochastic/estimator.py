"""StochasticFairPCA: Pareto descent on mini-batches, without the groups' covariances."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairpca._linalg.backends import NUMPY, device_library, to_host
from fairpca._linalg.device import DeviceBackend
from fairpca._linalg.types import Array
from fairpca.base import LinearReduction, axes_of_products
from fairpca.certificate import Certificate, NotCertified
from fairpca.data import prepare_rows, warn_of_no_groups
from fairpca.group_table import GroupTable
from fairpca.groups import Codes, Groups, sorted_labels, warn_of_dropped
from fairpca.moments import GroupMoments, MomentSum
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers.conclude import conclude
from fairpca.stochastic.batches import ArrayBatches, Batch, StreamBatches, as_double, rows_at_once
from fairpca.stochastic.tracked import (
    SubspaceLosses,
    TrackedSubspaces,
    summed_losses,
)
from fairpca.validation import (
    check_choice,
    check_flag,
    check_number,
    check_seed,
    check_whole_number,
)

_LARGEST = 1e60
"""Values beyond this are refused: fourth powers, and products of these, occur."""

NOTE = (
    "Own PCA and PCA are those that the same mini-batches led to: a disparity may be too small by "
    "what an own PCA lacks."
)


ORDINARY_PCA = "use scikit-learn's IncrementalPCA if ordinary PCA is wanted"

IS_PCA = (
    "No subspace fairer than that of ordinary PCA was found, so that one is returned: take more "
    "passes, or FairPCA."
)

WORSE = (
    "The worst-off group is worse off than with ordinary PCA, although groups differ less: take "
    "more passes, or FairPCA."
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
        groups = Groups((labels[i],), np.zeros(host.shape[0], np.int8))
        total.add(GroupMoments.from_groups(host, groups))
        yield i, block


def pair(item: Any) -> tuple[Any, Any]:
    """Rows and sensitive features of a chunk."""
    if not (isinstance(item, tuple | list) and len(item) == 2):
        raise ValueError(
            "batches must give pairs of rows and their sensitive features, not a "
            f"{type(item).__name__}."
        )
    return item[0], item[1]


def _leading(inner: Array, r: int) -> Array:
    """Eigenvectors of the r largest eigenvalues, as columns."""
    vectors: Array = np.linalg.eigh((inner + inner.T) / 2.0)[1][:, ::-1][:, :r]
    return vectors


_MOST_COLUMNS, _MOST_NUMBERS = 1000, 2**24
"""Up to this many columns, and numbers in all covariances, a certificate costs seconds at most."""


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
    max_passes : int, default=30
        The most passes over the rows, before a last one in which losses are summed; a pass draws
        as many rows as there are.
    tol : float, default=1e-2
        Norm of the direction, by rows that were held out, that counts as zero; it is in units of a
        step of the power method. So does one that is not significantly different from zero on them.
    n_iter_no_change : int, default=5
        Number of successive passes with such a norm after which it stops.
    validation_fraction : float, default=0.1
        Share of each group's rows, though at most 1,000, that are held out to estimate that norm;
        0 uses all rows, and takes `max_passes` passes.
    step_size : float, default=1.0
        The longest step, in units of a step of the power method; steps are shorter where the
        measured noise of the batches asks for it.
    certify : bool or "auto", default="auto"
        Whether covariances are formed at the end, for a certificate; "auto" does so up to 1,000
        columns if they take no more than 128 MB.
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
        As for `FairPCA`. Without a certificate, own PCA and PCA are those found by the same steps.
    certificate_ : Certificate or NotCertified
        How good the subspace provably is, by the spread that was reached; or that nothing is
        proven, and why. Print it.
    own_components_ : dict of arrays of shape (n_components_, n_features_in_)
        Each group's own subspace, as learnt along the way.
    pca_components_ : array of shape (n_components_, n_features_in_)
        The same for all rows.
    n_passes_, n_steps_ : int
        Passes over the rows and steps that were taken.
    history_ : list of dict
        For each pass the norm of the direction by held-out rows, its square, and the error of that.

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
    >>> fair = StochasticFairPCA(5, max_passes=10, validation_fraction=0, random_state=0)
    >>> fair = fair.fit(X, sensitive_features=adult.sensitive_features)
    >>> table = fair.group_table_
    >>> bool(table.largest_difference < 0.5 * np.ptp(table.pca_disparity))
    True
    """

    group_table_: GroupTable
    certificate_: Certificate | NotCertified
    own_components_: dict[Hashable, Array]
    pca_components_: Array
    n_passes_: int
    n_steps_: int
    history_: list[dict[str, float]]
    solution_: Solution
    name = "stochastic"

    def __init__(
        self,
        n_components: int = 2,
        *,
        batch_size: int = 1024,
        max_passes: int = 30,
        tol: float = 1e-2,
        n_iter_no_change: int = 5,
        validation_fraction: float = 0.1,
        step_size: float = 1.0,
        certify: bool | str = "auto",
        whiten: bool = False,
        keep_sensitive: bool = False,
        missing_labels: str = "error",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.batch_size = batch_size
        self.max_passes = max_passes
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.step_size = step_size
        self.certify = certify
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
            warn_of_no_groups(y, ORDINARY_PCA)
        codes, k, rng = groups.codes, len(groups.labels), self._rng
        batches = ArrayBatches(rows, codes, k, self.batch_size, self.validation_fraction, rng)
        spaces = self._random_spaces(rows)
        spaces.add_groups(k)
        run = self._descend(spaces, batches, batches.one_pass)
        self._finish(run, spaces, groups.labels, batches.shares, group_blocks(rows, codes, k))
        return self

    def fit_batches(self, batches: Iterable[tuple[Any, Any]]) -> StochasticFairPCA:
        """Find the fair subspace of rows that come in chunks, and can come again.

        Parameters
        ----------
        batches : iterable of pairs
            Rows, as for `fit`, and the sensitive features of these rows. It is gone through once in
            each pass, so it must not be an iterator that is used up: a list, or an object whose
            ``__iter__`` opens files again (`fairpca.sources.RowBatches` does). Chunks need not fit
            together with others in memory, should hold several mini-batches each, and come in the
            same order each time. Rows had better be mixed: groups that come one after another are
            tried to be balanced by rows that are kept of each, but that is less exact.

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
        first = next(iter(batches), None)
        if first is None:
            raise ValueError("There are no batches.")
        X, labels = pair(first)
        if labels is None:
            warn_of_no_groups(None, ORDINARY_PCA)
        spaces = self._random_spaces(self._prepare_rows(X, labels, is_part=True)[0])
        fraction, seed = self.validation_fraction, self.random_state or 0
        stream = StreamBatches(self.batch_size, fraction, seed, grouped=labels is not None)

        def one_pass() -> Iterator[Batch]:
            stream.begin_pass()
            for item in batches:
                yield from stream.cut(*self._chunk(*pair(item), stream, spaces))
            if not stream.labels:
                raise ValueError("sensitive_features is missing in all rows: there are no groups.")

        def blocks() -> Iterator[tuple[int, Any]]:
            for item in batches:
                chunk = self._chunk(*pair(item), stream, spaces)
                yield from group_blocks(*chunk, len(stream.labels))

        run = self._descend(spaces, stream, one_pass)
        warn_of_dropped(stream.n_dropped, stream.n_dropped + int(stream.counts.sum()))
        self._finish(run, spaces, stream.labels, stream.shares, blocks())
        return self

    def _check_parameters(self) -> None:
        check_whole_number("n_components", self.n_components)
        check_whole_number("batch_size", self.batch_size)
        check_whole_number("max_passes", self.max_passes)
        check_whole_number("n_iter_no_change", self.n_iter_no_change)
        check_number("tol", self.tol, least=0.0)
        check_number("validation_fraction", self.validation_fraction, least=0.0)
        if self.validation_fraction >= 0.5:
            raise ValueError(
                "validation_fraction must be below 0.5: most rows are there to learn from, got "
                f"{self.validation_fraction!r}."
            )
        check_choice("certify", self.certify, (True, False, "auto"))
        for name in ("whiten", "keep_sensitive"):
            check_flag(name, getattr(self, name))
        check_seed(self.random_state)
        check_number("step_size", self.step_size, least=0.0)
        if self.step_size == 0:
            raise ValueError("step_size must be positive.")

    @property
    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.random_state or 0)

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

    def _random_spaces(self, rows: Any) -> TrackedSubspaces:
        """Subspaces to begin with, where the rows are."""
        on_device = device_library(rows) is not None
        backend = DeviceBackend(as_double(rows[:1])) if on_device else NUMPY
        r = int(self.n_components)
        return TrackedSubspaces(rows.shape[1], r, self._rng, backend, self.step_size)

    def _chunk(
        self, X: Any, sensitive_features: Any, stream: StreamBatches, spaces: TrackedSubspaces
    ) -> tuple[Any, Codes]:
        """The rows of a chunk, and the positions of their groups among those of the stream."""
        if stream.grouped != (sensitive_features is not None):
            raise ValueError(
                "sensitive_features must be given with all rows or with none, and earlier ones had "
                f"{'them' if stream.grouped else 'none'}."
            )
        rows, groups, n_dropped = self._prepare_rows(
            X, sensitive_features, reset=False, is_part=True
        )
        on_device = isinstance(spaces.backend, DeviceBackend)
        if (device_library(rows) is not None) != on_device:
            raise ValueError(
                "Rows must all be of the same library: those before were "
                f"{'on a device' if on_device else 'of NumPy'}."
            )
        if stream.is_first_pass:
            stream.n_dropped += n_dropped
        codes, n_new = stream.codes(groups.labels, groups.codes)
        spaces.add_groups(n_new)
        return rows, codes

    def _descend(
        self,
        spaces: TrackedSubspaces,
        batches: ArrayBatches | StreamBatches,
        one_pass: Callable[[], Iterable[Batch]],
    ) -> Run:
        """Pass over the rows until held-out rows show no direction that improves all objectives."""
        history: list[dict[str, float]] = []
        in_a_row = 0
        for number in range(1, self.max_passes + 1):
            if number == 2 and batches.is_uneven:
                # Which groups came first would decide where it ends.
                spaces.restart()
            for batch, kinds in one_pass():
                spaces.take(batch, batches.shares, kinds)
            if parts := batches.parts:
                square, error = spaces.held_out_norm(parts, batches.shares)
                norm = float(np.sqrt(max(square, 0.0)))
                history.append({"pass": number, "norm": norm, "square": square, "error": error})
                short = self.tol > 0.0 and square <= max(self.tol**2, error)
                in_a_row = in_a_row + 1 if short else 0
            if in_a_row == self.n_iter_no_change:
                break
        return Run(history, number, in_a_row == self.n_iter_no_change)

    def _set_found(
        self,
        spaces: TrackedSubspaces,
        losses: SubspaceLosses,
        labels: Sequence[Hashable],
    ) -> bool:
        """Set what is fitted; returns whether it is PCA's subspace, for want of a fairer one."""
        r, host, weights = spaces.r, spaces.backend.host, losses.count / losses.count.sum()
        fair, pca, own = (list(parts) for parts in zip(*losses.inner, strict=True))
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
        variance = np.maximum(losses.variance, 0.0)
        self.group_table_ = GroupTable(
            name="fair",
            labels=tuple(labels[i] for i in order),
            count=losses.count[order],
            own_loss=np.maximum(variance - own_kept, 0.0)[order],
            pca_loss=np.maximum(variance - pca_kept, 0.0)[order],
            loss=np.maximum(variance - kept, 0.0)[order],
            variance=variance[order],
            group_names=self.sensitive_names_ or None,
            notes=(NOTE,),
        )
        total, inner, n = float(weights @ variance), np.tensordot(weights, fair, 1), losses.count
        self._set_axes(axes_of_products(basis, inner, total, losses.mean, int(n.sum())))
        self.own_components_ = {
            labels[i]: (host(spaces.own[i].basis) @ _leading(own[i], r)).T for i in order
        }
        self.pca_components_, self.n_steps_ = pca_basis.T, spaces.n_steps
        return is_pca

    def _finish(
        self, run: Run, spaces: TrackedSubspaces, labels: Any, shares: Array, blocks: Any
    ) -> None:
        """A last pass over the rows, for losses, and for a certificate where that is affordable."""
        k, d = len(labels), spaces.d
        affordable = d <= _MOST_COLUMNS and k * d * d <= _MOST_NUMBERS
        total = MomentSum()
        if affordable if self.certify == "auto" else self.certify:
            blocks = summed(blocks, labels, total)
        is_pca = self._set_found(spaces, summed_losses(spaces, shares, blocks), labels)
        self.n_passes_, self.history_ = run.n_passes, run.history
        self.__dict__.pop("solution_", None)
        if total.n_groups:
            self._certify(total, run)
        else:
            size = f"covariances of {d:,} columns would take {8 * k * d * d / 1e9:,.1f} GB"
            reason = size if self.certify else "it was not asked for"
            self.certificate_ = NotCertified(reason, run.direction)
        table, said = self.group_table_, []
        if run.history and not run.converged:
            said.append(
                f"StochasticFairPCA {run.message} and may not have arrived: {run.direction} More "
                "passes may help, unless held-out rows simply differ from those learnt from."
            )
        if k > 1 and (is_pca or table.disparity.max() > table.pca_disparity.max()):
            said.append(IS_PCA if is_pca else WORSE)
        if said:
            warnings.warn(" ".join(said), ConvergenceWarning, stacklevel=3)

    def _certify(self, total: MomentSum, run: Run) -> None:
        """The certificate, and the table with the groups' exact own losses."""
        moments = replace(total.moments(), group_names=self.sensitive_names_ or None)
        problem = Problem(moments, self.n_components_, criterion="equal")
        about: dict[str, Any] = {"n_iter": self.n_steps_, "n_eigen": 0, "passes": run.history}
        basis = np.ascontiguousarray(self.components_.T)
        self.solution_ = conclude(self, problem, basis, message=run.message, **about)
        self.certificate_ = self.solution_.certificate
        self.group_table_ = GroupTable.from_problem(problem, self.solution_.group_losses, "fair")
