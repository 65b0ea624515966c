"""GroupTable: what each group loses, for the terminal, the notebook and data frames."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.types import Array
from fairpca.measures import NO_VARIANCE
from fairpca.problem import Problem
from fairpca.text import (
    Printed,
    TextTable,
    formatted,
    html_parts,
    label_text,
    listed,
    most_of,
    short_texts,
)
from fairpca.validation import import_pandas

NO_CHANGE = 1e-9
"""Part of a group's variance that is not worth a word: rounding."""

_NO_CHANGE_AUDITED = 1e-6
"""The same in an audit: components may have been found, or stored, with seven digits."""

TIED = 1e-6
"""Part of the largest disparity by which another may be smaller and still count as the largest."""

_TRAINING = "training "
"""Before the names of columns that are about the PCA of other rows."""

_PERCENT, _UNKNOWN = ".1f", "unknown"


@dataclass(frozen=True, eq=False)
class GroupIntervals:
    """Where losses and disparities lie with about 95 % confidence; made by `audit`.

    The rows of each group are resampled (bootstrap), and the reduction stays as it is. Each array
    has a low and a high end for each group, nan for groups that have too few rows. A disparity can
    lie off the middle of its interval, which allows for the own PCA of a small group fitting it too
    well. studies/interval_coverage.md reports their coverage.

    Attributes
    ----------
    loss : array of shape (k, 2)
        Of the loss with the reduction.
    disparity : array of shape (k, 2)
        Of the disparity with the reduction.
    change : array of shape (k, 2)
        Of what each group loses more than with ordinary PCA.
    extremes : pair of int, or None
        The groups with the largest and the smallest disparity, of those with an interval.
    difference : pair of float, or None
        Of the difference between these two disparities. It allows for the two having been picked:
        it is one of a family that holds for all pairs of groups together.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import audit
    >>> from sklearn.decomposition import PCA
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> table = audit(PCA(2).fit(X), X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> low, high = table.intervals.loss[0]
    >>> bool(low < table.loss[0] < high)
    True
    """

    loss: Array
    disparity: Array
    change: Array
    extremes: tuple[int, int] | None
    difference: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Cross-validated losses of the groups, from ten folds or from five.

    Rows of large groups, of which one more row changes nothing, are judged in all folds alike.

    Attributes
    ----------
    pca_loss, loss : arrays of shape (k,)
        Loss with ordinary PCA, and with the subspace, each found without the fold.
    own_loss : array of shape (k,)
        Loss of each group with its own PCA, with the bias reduced: between that in sample, which is
        too small, and that on held-out rows, which is too large.
    weight : array of shape (k,)
        Weights of the groups in the total loss.

    See Also
    --------
    fairpca.GroupTable : Has it as `held_out`.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> fair = FairPCA(2).fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> bool((fair.group_table_.held_out.loss > fair.group_table_.loss).all())
    True
    """

    pca_loss: Array
    loss: Array
    own_loss: Array
    weight: Array

    @property
    def pca_disparity(self) -> Array:
        """What each group loses with ordinary PCA beyond its own PCA; (k,)."""
        return self.pca_loss - self.own_loss

    @property
    def disparity(self) -> Array:
        """What each group loses with the subspace beyond its own PCA; (k,)."""
        return self.loss - self.own_loss


@dataclass(frozen=True, eq=False, repr=False)
class GroupTable(Printed):
    """Losses and disparities of each group, with a reduction and with ordinary PCA.

    Printed, it shows the share of its variance that each group loses; `to_dict` and `to_frame` have
    losses and disparities.
    ``table["Female"]`` has the numbers of one group, ``table["Female", "Black"]`` those of an
    intersection, ``len(table)`` is the number of groups, and it iterates over their labels.

    Attributes
    ----------
    name : str
        What the reduction is called in the column heads.
    labels : tuple of length k
        The groups.
    count : integer array of shape (k,)
        Rows of each group.
    own_loss : array of shape (k,)
        Loss of each group with its own PCA: the least possible in this dimension, unless that is
        the PCA of its training rows. nan for groups that have none.
    pca_loss : array of shape (k,)
        Loss with ordinary PCA on all rows.
    loss : array of shape (k,)
        Loss with the reduction.
    variance : array of shape (k,)
        What each group loses when nothing is kept: the unit of its losses.
    group_names : tuple of str or None
        Names of the sensitive columns, where they have any.
    pca_is_best : bool
        Whether ordinary PCA has the least total loss of all reductions that this one is compared
        with, so that any other leaves some group worse off. It has for subspaces of the same
        dimension with losses measured from the mean of all rows.
    baseline : {"rows", "training"}
        Whether own PCA and PCA are those of the rows that the losses are of, or of the rows that
        the reduction was fitted to.
    intervals : GroupIntervals or None
        Bootstrap intervals; only from `audit`.
    p_value : array of shape (k,), or None
        Of a permutation test: how often random groups of the same sizes have a disparity with
        ordinary PCA that is as large, allowing for the number of groups. From `audit`.
    held_out : HeldOut or None
        The losses on held-out rows, where there were folds: of `FairPCA` with its default
        criterion.
    notes : tuple of str
        Further notes below the table.
    weight : array of shape (k,), or None
        The sum of the weights of each group's rows, where it is known.

    See Also
    --------
    fairpca.audit : Makes one of any fitted reduction.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> fair = FairPCA(2, criterion="minmax")
    >>> fair = fair.fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> fair.group_table_
                 % lost  % lost   % lost
    group  rows     PCA    fair  own PCA
    ------------------------------------
    a       100    35.1    35.6     17.1
    b       200    29.5    29.3     12.3
    ------------------------------------
    Compared with ordinary PCA, 1 of 2 groups is better off and 1 is worse off. The
    largest gain: b loses 0.2 % of its variance less. The largest loss: a loses 0.5
    % of its variance more. Ordinary PCA has the least total loss, so any other
    subspace leaves some group worse off.
    >>> fair.group_table_.worse_off
    ('a',)
    >>> round(fair.group_table_["a"]["fair disparity"], 4)
    2.4654
    """

    name: str
    labels: tuple[Hashable, ...]
    count: NDArray[np.int64]
    own_loss: Array
    pca_loss: Array
    loss: Array
    variance: Array
    group_names: tuple[str, ...] | None = None
    pca_is_best: bool = False
    baseline: str = "rows"
    intervals: GroupIntervals | None = None
    notes: tuple[str, ...] = ()
    held_out: HeldOut | None = None
    p_value: Array | None = None
    weight: Array | None = None

    @classmethod
    def from_problem(
        cls, problem: Problem, loss: Array, name: str, *, subspace: bool = True
    ) -> GroupTable:
        """The table for losses that a reduction has on a problem.

        `subspace` says whether it is one that the problem is about, or any other reduction.
        """
        moments = problem.moments
        return cls(
            name=name,
            labels=moments.labels,
            count=moments.count,
            own_loss=problem.own_losses,
            pca_loss=problem.group_losses(problem.pca_basis),
            loss=loss,
            variance=problem.traces,
            group_names=moments.group_names,
            pca_is_best=subspace and problem.centering == "global",
            weight=moments.weight,
        )

    @property
    def disparity(self) -> Array:
        """What each group loses with the reduction beyond its own PCA; (k,)."""
        return self.loss - self.own_loss

    @property
    def pca_disparity(self) -> Array:
        """What each group loses with ordinary PCA beyond its own PCA; (k,)."""
        return self.pca_loss - self.own_loss

    @property
    def change(self) -> Array:
        """What each group loses more than with ordinary PCA, 0 where that is rounding; (k,)."""
        change = self.loss - self.pca_loss
        part = _NO_CHANGE_AUDITED if self.name == "audited" else NO_CHANGE
        least = np.maximum(part * self.variance, NO_VARIANCE * self.variance.max(initial=0.0))
        return np.where(np.abs(change) > least, change, 0.0)

    @property
    def better_off(self) -> tuple[Hashable, ...]:
        """The groups that lose less than with ordinary PCA."""
        return tuple(self.labels[i] for i in np.flatnonzero(self.change < 0.0))

    @property
    def worse_off(self) -> tuple[Hashable, ...]:
        """The groups that lose more than with ordinary PCA."""
        return tuple(self.labels[i] for i in np.flatnonzero(self.change > 0.0))

    @property
    def baseline_names(self) -> tuple[str, str]:
        """What own PCA and ordinary PCA are called in the names of columns."""
        prefix = "" if self.baseline == "rows" else _TRAINING
        return f"{prefix}own PCA", f"{prefix}PCA"

    def share_of(self, losses: Array) -> Array:
        """Losses as shares of the groups' variance; 0 for groups without variance."""
        return np.divide(losses, self.variance, out=np.zeros(len(self)), where=self.variance > 0.0)

    def group_texts(self) -> list[str]:
        """The groups as text; the parts of an intersection with the names of their columns."""
        return [label_text(label, self.group_names) for label in self.labels]

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, as lists; shares are those of the group's variance."""
        own, pca = self.baseline_names
        columns: dict[str, list[Any]] = {
            "group": self.group_texts(),
            "rows": self.count.tolist(),
            "variance": self.variance.tolist(),
        }
        for name, loss in ((own, self.own_loss), (pca, self.pca_loss), (self.name, self.loss)):
            columns[f"{name} loss"] = loss.tolist()
            columns[f"{name} share lost"] = self.share_of(loss).tolist()
        columns[f"{pca} disparity"] = self.pca_disparity.tolist()
        columns[f"{self.name} disparity"] = self.disparity.tolist()
        if (held_out := self.held_out) is not None:
            columns[f"{own} loss debiased"] = held_out.own_loss.tolist()
            for name, loss in ((pca, held_out.pca_loss), (self.name, held_out.loss)):
                columns[f"{name} loss held out"] = loss.tolist()
        for name in ("loss", "disparity", "change") if self.intervals is not None else ():
            ends = getattr(self.intervals, name)
            columns[f"{self.name} {name} low"] = ends[:, 0].tolist()
            columns[f"{self.name} {name} high"] = ends[:, 1].tolist()
        if self.p_value is not None:
            columns[f"{pca} disparity p-value"] = self.p_value.tolist()
        return columns

    def to_frame(self) -> Any:
        """The table as a pandas data frame, with the labels of the groups as its index.

        Groups of several sensitive features have an index of several levels. Levels have the names
        of the sensitive columns; a single one without a name is called "group".
        """
        pandas = import_pandas()
        frame = pandas.DataFrame(self.to_dict()).drop(columns="group")
        names = self.group_names
        if all(isinstance(label, tuple) for label in self.labels):
            frame.index = pandas.MultiIndex.from_tuples(self.labels, names=names)
        else:
            name = names[0] if names is not None and len(names) == 1 else "group"
            frame.index = pandas.Index(self.labels, name=name)
        return frame

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.labels)

    def __getitem__(self, label: Hashable) -> dict[str, Any]:
        """The numbers of one group, by the names of the columns."""
        shown = dict(zip(self.group_texts(), self.labels, strict=True))
        label = label if label in self.labels else shown.get(str(label), label)
        if label not in self.labels:
            raise KeyError(f"There is no group {label!r}; there are {listed(self.labels, 10)}.")
        i = self.labels.index(label)
        return {name: column[i] for name, column in self.to_dict().items() if name != "group"}

    def _repr_html_(self) -> str:
        return html_parts([self._short_table(range(len(self))), self.sentences()])

    def text_parts(self) -> list[TextTable | str]:
        """What is printed: the share of variance that each group loses, and who gains and pays.

        Of many groups the table has those with the largest disparities.
        """
        shown, left = self._shown()
        return [self._short_table(shown), *filter(None, [left, self.sentences()])]

    def _shown(self) -> tuple[Sequence[int], str]:
        return most_of(np.fmax(np.nan_to_num(self.disparity), self.pca_disparity))

    def sentences(self) -> str:
        """Who is better and who is worse off than with ordinary PCA, and the notes, in words.

        One group has nothing to be compared with.
        """
        k, better, worse = len(self), len(self.better_off), len(self.worse_off)
        pca = "ordinary PCA" if self.baseline == "rows" else "the PCA of the training rows"
        if k == 1:
            return " ".join(self.notes)
        if not better and not worse:
            parts = [f"Every group is as well off as with {pca}."]
        elif k in (better, worse):
            parts = [f"Every group is {'better' if better else 'worse'} off than with {pca}."]
        else:
            parts = [
                f"Compared with {pca}, {better or 'none'} of {k} groups "
                f"{'is' if better < 2 else 'are'} better off and {worse or 'none'} "
                f"{'is' if worse < 2 else 'are'} worse off."
            ]
        names, change = short_texts(self.group_texts()), self.share_of(self.change)
        for n, i, what, word in (
            (better, change.argmin(), "gain", "less"),
            (worse, change.argmax(), "loss", "more"),
        ):
            if n:
                share = formatted(100.0 * abs(change[i]), _PERCENT, least=0.0)
                parts.append(
                    f"The largest {what}: {names[i]} loses {share} % of its variance {word}."
                )
        if self.pca_is_best and 0 < worse < k:
            parts.append(
                "Ordinary PCA has the least total loss, so any other subspace leaves some group "
                "worse off."
            )
        return " ".join([*parts, *self._held_out_sentence(), *self.notes])

    def _held_out_sentence(self) -> list[str]:
        """What holds on held-out rows for the group that is worst off with PCA there."""
        found = self.held_out
        if found is None or not (whole := float(found.weight @ self.variance)):
            return []
        worst = int(found.pca_disparity.argmax())
        pca, fair = (
            [formatted(100.0 * share, _PERCENT) for share in (self.share_of(loss)[worst], total)]
            for loss in (found.pca_loss, found.loss)
            for total in [float(found.weight @ loss) / whole]
        )
        name = short_texts(self.group_texts())[worst]
        return [
            f"On held-out rows {name}, which has the largest disparity with PCA, loses "
            f"{pca[0]} % of its variance with PCA and {fair[0]} % here; all rows together lose "
            f"{pca[1]} % and {fair[1]} %."
        ]

    def _short_table(self, groups: Sequence[int]) -> TextTable:
        """The share of its variance that each group loses with PCA, here, and with its own PCA."""
        own, pca = (name.replace(_TRAINING, "training\n") for name in self.baseline_names)
        losses = ((pca, self.pca_loss), (self.name, self.loss), (own, self.own_loss))
        shares = {f"% lost\n{name}": 100.0 * self.share_of(loss) for name, loss in losses}
        names, least = short_texts(self.group_texts()), 100.0 * NO_CHANGE
        rows = [
            [
                names[i],
                f"{self.count[i]:,}",
                *(
                    _UNKNOWN if np.isnan(share[i]) else formatted(share[i], _PERCENT, least)
                    for share in shares.values()
                ),
            ]
            for i in groups
        ]
        head = ["group", "rows", *shares]
        if self.intervals is not None:
            head.insert(4, f"95 % interval\n{self.name}")
            ends = np.array([self.share_of(end) for end in self.intervals.loss.T]).T
            for row, i in zip(rows, groups, strict=True):
                low, high = (formatted(100.0 * end, _PERCENT) for end in ends[i])
                row.insert(4, f"{low} to {high}" if np.isfinite(ends[i][0]) else _UNKNOWN)
        worst = _worst(groups, (self.pca_disparity, self.disparity), 2)
        return TextTable(head, rows, worst)


def _worst(
    groups: Sequence[int], columns: Iterable[Array], first: int
) -> frozenset[tuple[int, int]]:
    """The cells of groups with the largest disparity, in columns from the first on.

    None where most groups have it.
    """
    worst: set[tuple[int, int]] = set()
    for column, values in enumerate(columns, first):
        most = np.nanmax(values, initial=0.0)
        largest = values >= most - TIED * abs(most)
        if 2 * largest.sum() <= len(values):
            worst |= {(row, column) for row, i in enumerate(groups) if largest[i]}
    return frozenset(worst)
