"""pareto_front: every trade-off between total loss and equality, from PCA to the fairest."""

from __future__ import annotations

import html
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairpca._linalg.types import Array
from fairpca._rows.checks import (
    check_number,
    check_seed,
    check_whole_number,
    import_pandas,
)
from fairpca._rows.text import aligned, distinct_texts, html_row, number_format, shown
from fairpca.estimators.fair_pca import FairPCA
from fairpca.estimators.gather import pose
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers import sweep

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""

_SHOWN_POINTS = 8
_FINDING = "finding the points of the front"


@dataclass(frozen=True, eq=False, repr=False)
class ParetoFront:
    """The least total loss at every spread, from ordinary PCA to the fairest subspace.

    The *spread* of a subspace is the largest difference between the disparities of two groups. The
    points are evenly spaced in spread; each has the least total loss among the subspaces whose
    spread is no larger, and a certificate that says how surely. `pareto_front` makes one from
    rows, `ParetoFront.of` from a `Problem`.

    With two groups the front is convex, and every point is proven optimal. With more, a point may
    have a gap, and a subspace that a fairer point has found is used wherever it is the best known.

    Attributes
    ----------
    problem : Problem
        What was asked; its tolerance is zero.
    solutions : tuple of Solution
        By falling spread: the first has the least total loss of all (ordinary PCA, unless
        ``centering="group"``), the last the smallest spread that was found. Where the first is as
        fair as can be there is only one.
    missing_labels : str
        As given to `pareto_front`, for `estimator`.
    random_state : int or None
        Seed that was used.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.front import ParetoFront
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> problem = Problem(GroupMoments.from_rows(X, ["a"] * 100 + ["b"] * 200), n_components=2)
    >>> front = ParetoFront.of(problem, n_points=5)
    >>> front
    point   spread  total loss  extra loss  least disparity  largest disparity   status
    -----------------------------------------------------------------------------------
    0      14.4176     15.0359      0.00 %           0.0734            14.4909  optimal
    1      10.8132     15.4054      2.46 %           1.6443            12.4575  optimal
    2       7.2088     15.9006      5.75 %           3.3409            10.5497  optimal
    3       3.6044     16.4327      9.29 %           5.0746             8.6789  optimal
    4       0.0000     16.9982     13.05 %           6.8415             6.8415  optimal
    -----------------------------------------------------------------------------------
    5 of 5 points proven optimal. The fairest:
    Proven optimal: all groups have equal disparities at a total loss of 16.9982, and no subspace
    of this dimension that does the same loses less.
    """

    problem: Problem
    solutions: tuple[Solution, ...]
    missing_labels: str = "error"
    random_state: int | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        n_points: int = 50,
        random_state: int | None = None,
        *,
        progress: Progress | None = None,
    ) -> ParetoFront:
        """The front of a problem.

        Parameters
        ----------
        problem : Problem
            Its criterion has to be "equal"; its tolerance does not matter.
        n_points : int, default=50
            How many points, from the least total loss to the smallest spread; at least 2.
        random_state : int or None, default=None
            Seed of the starts of the search, for more than two groups; None is a fixed seed too.
        progress : callable, default=None
            Called with ``("finding the points of the front", done, total)`` each time that one
            more point is ready, for a progress bar. `total` is `n_points`, or 1 at the end where
            the first point is as fair as can be.

        Returns
        -------
        ParetoFront
        """
        check_n_points(n_points)
        check_seed(random_state)
        _check_progress(progress)
        if problem.criterion != "equal":
            raise ValueError(
                "A front needs a problem with criterion='equal', whose tolerance it varies, got "
                f"criterion={problem.criterion!r}."
            )
        problem = problem.with_tolerance(0.0)
        told = {} if progress is None else {"report": partial(progress, _FINDING)}
        solutions = sweep(problem, int(n_points), random_state, **told)
        return cls(problem, tuple(solutions), random_state=random_state)

    def __len__(self) -> int:
        return len(self.solutions)

    def __getitem__(self, index: int) -> Solution:
        return self.solutions[index]

    def __iter__(self) -> Iterator[Solution]:
        return iter(self.solutions)

    @cached_property
    def disparities(self) -> Array:
        """Disparity of each group at each point; (n, k)."""
        return np.array([solution.disparities for solution in self.solutions])

    @cached_property
    def spread(self) -> Array:
        """Largest difference between the disparities of two groups at each point; (n,)."""
        spread: Array = np.ptp(self.disparities, axis=1)
        return spread

    @cached_property
    def total_loss(self) -> Array:
        """Total loss of each point; (n,)."""
        return np.array([solution.total_loss for solution in self.solutions])

    @cached_property
    def extra_loss(self) -> Array:
        """How much more each point loses than the first, relative to the first; (n,)."""
        least = self.total_loss[0]
        extra: Array = (self.total_loss - least) / (least if least > 0 else 1.0)
        return extra

    @cached_property
    def relative_gap(self) -> Array:
        """By how much the loss of each point can be too large at the most, relative to it; (n,)."""
        return np.array([solution.certificate.relative_gap for solution in self.solutions])

    @property
    def spread_bound(self) -> float:
        """No subspace has a smaller spread. Zero unless equality is proven impossible."""
        return self.solutions[-1].certificate.spread_bound

    def select(
        self,
        index: int | None = None,
        *,
        max_spread: float | None = None,
        max_extra_loss: float | None = None,
        knee: bool = False,
    ) -> int:
        """The number of the point that meets a wish; give exactly one.

        Parameters
        ----------
        index : int, default=None
            The number itself; negative ones count from the fairest.
        max_spread : float, default=None
            The cheapest point whose spread is no larger, but for rounding (see `Certificate`).
        max_extra_loss : float, default=None
            The fairest point that loses no more than ``1 + max_extra_loss`` times as much as the
            first: 0.01 is one per cent more.
        knee : bool, default=False
            The point that lies farthest below the straight line from the first point to the last,
            with both axes scaled to [0, 1].

        Returns
        -------
        int
            Between 0 and ``len(front) - 1``.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca.front import pareto_front
        >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
        >>> X[:100] = X[:100, ::-1]
        >>> groups = ["a"] * 100 + ["b"] * 200
        >>> front = pareto_front(X, sensitive_features=groups, n_components=2, n_points=11)
        >>> front.select(max_extra_loss=0.01), front.select(max_spread=5.0), front.select(knee=True)
        (1, 7, 3)
        """
        wishes = (index is not None, max_spread is not None, max_extra_loss is not None, bool(knee))
        if sum(wishes) != 1:
            raise ValueError(
                "Choose a point by exactly one of index, max_spread, max_extra_loss and knee=True, "
                f"got {sum(wishes)} of them."
            )
        if index is not None:
            return self._number(index)
        if max_spread is not None:
            return self._cheapest(max_spread)
        if max_extra_loss is not None:
            return self._fairest(max_extra_loss)
        return self._knee()

    def estimator(
        self,
        index: int | None = None,
        *,
        max_spread: float | None = None,
        max_extra_loss: float | None = None,
        knee: bool = False,
    ) -> FairPCA:
        """A fitted `FairPCA` for one point, chosen as by `select`.

        Its `tolerance` is the spread of the point, so that fitting it to the same rows finds the
        same subspace, or with more than two groups one as good as the certificate says.

        Parameters
        ----------
        index : int, default=None
            The number itself; negative ones count from the fairest.
        max_spread : float, default=None
            The cheapest point whose spread is no larger.
        max_extra_loss : float, default=None
            The fairest point that loses no more than ``1 + max_extra_loss`` times as much as the
            first.
        knee : bool, default=False
            The point farthest below the straight line from the first point to the last.

        Returns
        -------
        FairPCA

        Examples
        --------
        >>> from fairpca.datasets import load_adult
        >>> from fairpca.front import pareto_front
        >>> adult = load_adult()
        >>> groups = adult.sensitive_features
        >>> front = pareto_front(adult.data, sensitive_features=groups, n_components=3)
        >>> front.estimator(knee=True).transform(adult.data).shape
        (32561, 3)
        """
        chosen = self.select(index, max_spread=max_spread, max_extra_loss=max_extra_loss, knee=knee)
        solution = self.solutions[chosen]
        tolerance = solution.certificate.tolerance
        if self.spread[chosen] < tolerance - self.problem.negligible_spread:
            tolerance = float(self.spread[chosen])  # the subspace of a fairer point
        problem = self.problem
        fair = FairPCA(
            problem.n_components,
            tolerance=tolerance,
            loss=problem.loss,
            centering=problem.centering,
            missing_labels=self.missing_labels,
            random_state=self.random_state,
        )
        fair.n_features_in_ = problem.moments.n_features
        if problem.moments.feature_names is not None:
            fair.feature_names_in_ = np.array(problem.moments.feature_names, dtype=object)
        fair._set_fitted(problem.with_tolerance(tolerance), solution)
        return fair

    def hypervolume(self, reference: tuple[float, float] | None = None) -> float:
        """Area that the points dominate, in spread and extra loss.

        Parameters
        ----------
        reference : pair of float, default=None
            Spread and extra loss beyond which nothing counts. None is the spread of the first
            point and the extra loss of the last.

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca.front import pareto_front
        >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
        >>> X[:100] = X[:100, ::-1]
        >>> groups = ["a"] * 100 + ["b"] * 200
        >>> front = pareto_front(X, sensitive_features=groups, n_components=2, n_points=11)
        >>> round(front.hypervolume(), 3)
        0.929
        """
        if reference is None:
            widest, dearest = float(self.spread[0]), float(self.extra_loss[-1])
        else:
            pair = np.asarray(reference, dtype=np.float64)
            if pair.shape != (2,) or not np.isfinite(pair).all():
                raise ValueError(
                    f"reference must be two numbers, a spread and an extra loss, got {reference!r}."
                )
            widest, dearest = float(pair[0]), float(pair[1])
        order = np.argsort(self.spread, kind="stable")
        edges = np.minimum(np.append(self.spread[order], widest), widest)
        heights = dearest - np.minimum.accumulate(self.extra_loss[order])
        return float(np.diff(edges) @ np.maximum(heights, 0.0))

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, as lists with one entry for each point."""
        names = distinct_texts(self.problem.moments.labels)
        columns: dict[str, list[Any]] = {
            "spread": self.spread.tolist(),
            "total loss": self.total_loss.tolist(),
            "extra loss": self.extra_loss.tolist(),
            "relative gap": self.relative_gap.tolist(),
            "status": [solution.certificate.status for solution in self.solutions],
        }
        for name, disparities in zip(names, self.disparities.T, strict=True):
            columns[f"disparity of {name}"] = disparities.tolist()
        return columns

    def to_frame(self) -> Any:
        """The points as the rows of a pandas data frame."""
        pandas = import_pandas()
        frame = pandas.DataFrame(self.to_dict())
        frame.index.name = "point"
        return frame

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        head, *body = self._cells()
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        lines = [aligned(row, widths) for row in (head, *body)]
        rule = "-" * len(lines[0])
        return "\n".join([lines[0], rule, *lines[1:], rule, *self._sentences()])

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        return (
            f"<table><thead>{html_row(head, 'th')}</thead>"
            f"<tbody>{''.join(html_row(row, 'td') for row in body)}</tbody></table>"
            + "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self._sentences())
        )

    def _cells(self) -> list[list[str]]:
        """Head and a few of the points, the first and the last among them."""
        n = len(self)
        few = np.unique(np.linspace(0, n - 1, min(n, _SHOWN_POINTS)).round().astype(int))
        columns = [
            self.spread,
            self.total_loss,
            self.disparities.min(axis=1),
            self.disparities.max(axis=1),
        ]
        form = number_format([column.tolist() for column in columns])
        head = ["point", "spread", "total loss", "extra loss"]
        rows = [
            [
                str(i),
                shown(self.spread[i], form),
                shown(self.total_loss[i], form),
                shown(100 * self.extra_loss[i], ".2f") + " %",
                shown(columns[2][i], form),
                shown(columns[3][i], form),
                self.solutions[i].certificate.status,
            ]
            for i in few
        ]
        return [[*head, "least disparity", "largest disparity", "status"], *rows]

    def _sentences(self) -> list[str]:
        proven = sum(solution.certificate.status == "optimal" for solution in self.solutions)
        gap = "" if proven == len(self) else f", the largest gap is {self.relative_gap.max():.2g}"
        return [
            f"{proven} of {len(self)} points proven optimal{gap}. The fairest:",
            *self.solutions[-1].certificate.sentences(),
        ]

    def _number(self, index: int) -> int:
        try:
            number = operator.index(index)
        except TypeError as error:
            raise ValueError(f"index must be an integer, got {index!r}.") from error
        if not -len(self) <= number < len(self):
            raise IndexError(f"There are {len(self)} points, so there is none with index {number}.")
        return number % len(self)

    def _cheapest(self, max_spread: float) -> int:
        check_number("max_spread", max_spread, least=0.0)
        fair = self.spread <= float(max_spread) + self.problem.negligible_spread
        if not fair.any():
            raise ValueError(
                f"No point has a spread of at most {max_spread:g}: the smallest is "
                f"{self.spread.min():g}."
            )
        # Of equally cheap points the fairest.
        return int(np.lexsort((self.spread, self.total_loss, ~fair))[0])

    def _fairest(self, max_extra_loss: float) -> int:
        check_number("max_extra_loss", max_extra_loss, least=0.0)
        cheap = self.extra_loss <= float(max_extra_loss)
        # Of equally fair points the cheapest.
        return int(np.lexsort((self.total_loss, self.spread, ~cheap))[0])

    def _knee(self) -> int:
        return int(np.argmax(-_scaled(self.spread) - _scaled(self.total_loss)))


def pareto_front(
    X: Any,
    *,
    sensitive_features: Any,
    n_components: int,
    n_points: int = 50,
    loss: str = "mean",
    centering: str = "global",
    sample_weight: ArrayLike | None = None,
    missing_labels: str = "error",
    random_state: int | None = None,
    progress: Progress | None = None,
) -> ParetoFront:
    """The exact trade-off between total loss and equality.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Numeric and without missing values.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, m)
        The group of each row; several columns make groups of their intersections.
    n_components : int
        Dimension of the subspaces, from 1 to the number of columns.
    n_points : int, default=50
        How many points, evenly spaced in spread (the largest difference between the disparities of
        two groups), from the least total loss to the smallest spread; at least 2.
    loss : {"mean", "sum"}, default="mean"
        Whether a group's loss is the mean over its rows or the sum.
    centering : {"global", "group"}, default="global"
        Whether losses are measured from the mean of all rows or of each group.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the rows.
    missing_labels : {"error", "group"}, default="error"
        Whether missing sensitive features are an error or a group of their own.
    random_state : int or None, default=None
        Seed of the starts of the search, for more than two groups; None is a fixed seed too.
    progress : callable, default=None
        Called with ``("finding the points of the front", done, total)`` each time that one
        more point is ready, for a progress bar. `total` is `n_points`, or 1 at the end where
        the first point is as fair as can be.

    Returns
    -------
    ParetoFront
        Print it, choose a point, and take its `FairPCA`.

    Examples
    --------
    >>> from fairpca.datasets import load_adult
    >>> from fairpca.front import pareto_front
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult(sensitive="race")
    >>> X = StandardScaler().set_output(transform="pandas").fit_transform(adult.data)
    >>> front = pareto_front(X, sensitive_features=adult.sensitive_features, n_components=5)
    >>> print(front)
    point   spread  total loss  extra loss  least disparity  largest disparity   status
    -----------------------------------------------------------------------------------
    0      11.7952      7.0129      0.00 %           0.5036            12.2988  optimal
    7      10.1102      7.0149      0.03 %           0.5686            10.6788  optimal
    14      8.4251      7.0207      0.11 %           0.6313             9.0564  optimal
    21      6.7401      7.0304      0.25 %           0.6921             7.4322  optimal
    28      5.0551      7.0445      0.45 %           0.7512             5.8063  optimal
    35      3.3701      7.0640      0.73 %           0.8088             4.1789  optimal
    42      1.6850      7.1172      1.49 %           0.9049             2.5899  optimal
    49      0.0000      7.2947      4.02 %           1.1453             1.1453  optimal
    -----------------------------------------------------------------------------------
    50 of 50 points proven optimal. The fairest:
    Proven optimal: all groups have equal disparities at a total loss of 7.29472, and no subspace
    of this dimension that does the same loses less.
    Equality levels down here: with criterion='minmax' no group is worse off, and disparities are
    lower by 0.00381 to 0.0824, though not equal.
    >>> fair = front.estimator(max_extra_loss=0.01)
    >>> fair.group_table_.disparity.round(2).tolist()
    [3.24, 2.39, 0.84, 3.24, 0.84]
    """
    check_n_points(n_points)
    _check_progress(progress)
    posed = pose(
        X,
        sensitive_features=sensitive_features,
        n_components=n_components,
        loss=loss,
        centering=centering,
        sample_weight=sample_weight,
        missing_labels=missing_labels,
        random_state=random_state,
    )
    front = ParetoFront.of(posed.problem, n_points, random_state, progress=progress)
    return replace(front, missing_labels=missing_labels)


def check_n_points(n_points: object) -> None:
    """Raise ValueError unless this is an integer of at least 2."""
    check_whole_number("n_points", n_points)
    if n_points == 1:
        raise ValueError("n_points must be at least 2: the two ends of the front.")


def _check_progress(progress: object) -> None:
    if progress is not None and not callable(progress):
        raise ValueError(f"progress must be None or a function to call, got {progress!r}.")


def _scaled(values: Array) -> Array:
    """The values scaled to [0, 1]; zeros where all are equal."""
    width = float(np.ptp(values))
    scaled: Array = (values - values.min()) / (width if width > 0 else 1.0)
    return scaled
