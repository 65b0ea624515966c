"""ParetoFront: every trade-off between total loss and fairness, from PCA to the fairest."""

from __future__ import annotations

import html
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.cells import TextTable, laid_out
from fairpca._rows.checks import (
    Progress,
    check_choice,
    check_number,
    check_progress,
    check_seed,
    import_pandas,
)
from fairpca._rows.text import html_table
from fairpca.estimators.fair_pca import FairPCA
from fairpca.front.shown import cells_of, columns_of, sentences_of
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers import UNFAIRNESS, check_sweep, sweep


@dataclass(frozen=True, eq=False, repr=False)
class ParetoFront:
    """The least total loss at every level of unfairness, from ordinary PCA to the fairest subspace.

    The *unfairness* of a subspace is the largest disparity of a group, or its *spread*: the largest
    difference between the disparities of two groups, as in the paper. The points are evenly spaced
    in it; each has the least total loss among the subspaces that are no more unfair, and a
    certificate that says how surely. `pareto_front` makes one from rows, `ParetoFront.from_problem`
    from a `Problem`.

    On the front over the largest disparity no group is ever made worse off for the sake of
    equality alone. Where all points are proven optimal the front is convex, up to rounding. A point
    may have a gap, and a subspace that a fairer point has found is used wherever it is the best
    known.

    Attributes
    ----------
    problem : Problem
        What was asked, with the criterion "minmax" or, over the spread, "equal".
    solutions : tuple of Solution
        By falling unfairness: the first has the least total loss of all (ordinary PCA, unless
        ``centering="group"``), the last the smallest unfairness that was found. Where the first is
        as fair as can be there is only one.
    over : {"largest", "spread"}
        What unfairness is.
    missing_labels, random_state : str, int or None
        As given to `pareto_front`.

    See Also
    --------
    fairpca.plotting.FrontDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.front import ParetoFront
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> problem = Problem(GroupMoments.from_rows(X, ["a"] * 100 + ["b"] * 200), n_components=2)
    >>> front = ParetoFront.from_problem(problem, n_points=5)
    >>> front
             largest    total    extra      least
    point  disparity     loss     loss  disparity   spread   status
    ---------------------------------------------------------------
    0        14.4909  15.0359   0.00 %     0.0734  14.4176  optimal
    1        12.5786  15.3764   2.26 %     1.5402  11.0384  optimal
    2        10.6662  15.8688   5.54 %     3.2350   7.4312  optimal
    3         8.7539  16.4106   9.14 %     5.0040   3.7499  optimal
    4         6.8415  16.9982  13.05 %     6.8415   0.0000  optimal
    ---------------------------------------------------------------
    5 of 5 points proven optimal. The fairest:
    Proven optimal: in every subspace of this dimension some group has a disparity
    of at least 6.84153, and here none has more than 6.84153.
    Compared with ordinary PCA, one group is better off, by 7.65, and one worse off,
    by 6.77: some group always is, because ordinary PCA has the least total loss.
    For every mixture of the criterion's groups, measured from the fitted mean and
    with mean losses, the disparity from the mixture's own best subspace is at most
    6.84153, and no subspace has a smaller worst case.
    """

    problem: Problem
    solutions: tuple[Solution, ...]
    over: str = "largest"
    missing_labels: str = "error"
    random_state: int | None = None

    @classmethod
    def from_problem(
        cls,
        problem: Problem,
        n_points: int = 50,
        random_state: int | None = None,
        *,
        over: str = "largest",
        missing_labels: str = "error",
        gap: float | None = None,
        time_limit: float | None = None,
        progress: Progress | None = None,
    ) -> ParetoFront:
        """The front of a problem.

        Parameters
        ----------
        problem : Problem
            Its criterion, tolerance, bounds and extra loss do not matter.
        n_points : int, default=50
            How many points, from the least total loss to the smallest unfairness; at least 2.
        random_state : int or None, default=None
            Seed of the starts of the search, for more than two groups; None is a fixed seed too.
        over : {"largest", "spread"}, default="largest"
            What unfairness is: the largest measure of a group, or the largest difference between
            the measures of two groups.
        missing_labels : {"error", "group", "drop"}, default="error"
            A parameter of the estimators of points.
        gap, time_limit, progress : as for `fairpca.solvers.sweep`
            When points are good enough, when time is up, and who is told of each point.

        Returns
        -------
        ParetoFront
        """
        check_sweep(n_points, gap, time_limit)
        check_seed(random_state)
        check_progress(progress)
        check_choice("over", over, UNFAIRNESS)
        problem = problem.with_minmax() if over == "largest" else problem.with_tolerance(0.0)
        limits = {"gap": gap, "time_limit": time_limit}
        solutions = sweep(problem, int(n_points), random_state, progress, over=over, **limits)
        return cls(problem, tuple(solutions), over, missing_labels, random_state)

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
    def measures(self) -> Array:
        """Measure of each group at each point: the disparity, unless another was chosen; (n, k)."""
        return np.array([solution.certificate.measures for solution in self.solutions])

    @cached_property
    def spread(self) -> Array:
        """Largest difference between the measures of two groups at each point; (n,)."""
        return np.asarray(np.ptp(self.measures, axis=1))

    @cached_property
    def largest(self) -> Array:
        """Largest measure of a group at each point; (n,)."""
        return np.asarray(self.measures.max(axis=1))

    @property
    def unfairness(self) -> Array:
        """`largest` or `spread`, whichever the front is over; (n,)."""
        return self.largest if self.over == "largest" else self.spread

    @cached_property
    def total_loss(self) -> Array:
        """Total loss of each point; (n,)."""
        return np.array([solution.total_loss for solution in self.solutions])

    @cached_property
    def extra_loss(self) -> Array:
        """How much more each point loses than the first, relative to the first; (n,)."""
        least = self.total_loss[0]
        return np.asarray((self.total_loss - least) / (least if least > 0 else 1.0))

    @cached_property
    def relative_gap(self) -> Array:
        """The gap of each point's certificate, relative to its value; (n,).

        The value is the total loss. Over the largest measure, that of the fairest point is the
        largest measure itself.
        """
        return np.array([solution.certificate.relative_gap for solution in self.solutions])

    @property
    def unfairness_bound(self) -> float:
        """No subspace is less unfair than this."""
        certificate = self.solutions[-1].certificate
        return certificate.lower_bound if self.over == "largest" else certificate.miss_bound

    def select(
        self,
        index: int | None = None,
        *,
        max_largest: float | None = None,
        max_spread: float | None = None,
        max_extra_loss: float | None = None,
        knee: bool = False,
    ) -> int:
        """The number of the point that meets a wish; give exactly one.

        Parameters
        ----------
        index : int, default=None
            The number itself; negative ones count from the fairest.
        max_largest, max_spread : float, default=None
            The cheapest point whose largest measure, or whose spread, is no larger, up to rounding
            (see `Certificate`). With ``measure="variance"`` measures are negative.
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
        >>> front.select(max_extra_loss=0.01), front.select(max_largest=10), front.select(knee=True)
        (1, 6, 4)
        """
        given = (index, max_largest, max_spread, max_extra_loss)
        wishes = sum(wish is not None for wish in given) + bool(knee)
        if wishes != 1:
            raise ValueError(
                "Choose a point by exactly one of index, max_largest, max_spread, max_extra_loss "
                f"and knee=True, got {wishes} of them."
            )
        if index is not None:
            try:
                number = operator.index(index)
            except TypeError as error:
                raise ValueError(f"index must be an integer, got {index!r}.") from error
            if -len(self) <= number < len(self):
                return number % len(self)
            raise IndexError(f"There are {len(self)} points, so there is none with index {number}.")
        if max_spread is not None:
            check_number("max_spread", max_spread, least=0.0)
            return self._cheapest("spread", self.spread, float(max_spread))
        if max_largest is not None:
            check_number("max_largest", max_largest, least=-np.inf)
            noun = self.solutions[0].certificate.measure
            return self._cheapest(f"largest {noun}", self.largest, float(max_largest))
        if max_extra_loss is not None:
            check_number("max_extra_loss", max_extra_loss, least=0.0)
            cheap = self.extra_loss <= float(max_extra_loss)
            # Of equally fair points the cheapest.
            return int(np.lexsort((self.total_loss, self.unfairness, ~cheap))[0])
        points = np.array([self.unfairness, self.total_loss])
        points -= points.min(axis=1, keepdims=True)
        widths = points.max(axis=1, keepdims=True)
        return int((points / np.where(widths > 0.0, widths, 1.0)).sum(axis=0).argmin())

    def _cheapest(self, name: str, levels: Array, most: float) -> int:
        fair = levels <= most + self.problem.negligible_spread
        if not fair.any():
            raise ValueError(
                f"No point has a {name} of at most {most:g}: the smallest is {levels.min():g}."
            )
        # Of equally cheap points the fairest.
        return int(np.lexsort((levels, self.total_loss, ~fair))[0])

    def estimator(self, index: int | None = None, **wish: Any) -> FairPCA:
        """A fitted `FairPCA` for one point.

        Its `bounds`, or its `tolerance`, are those of the point, so that fitting it to the same
        rows finds the same subspace, or with more than two groups one as good as the certificate
        says. That of the fairest point over the largest measure has the criterion "minmax" alone.

        Parameters
        ----------
        index, **wish : as for `select`
            The point.

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
        chosen = self.select(index, **wish)
        solution, problem = self.solutions[chosen], self.problem
        bound = None
        if self.over == "spread":
            tolerance = solution.certificate.tolerance
            if self.spread[chosen] < tolerance - problem.negligible_spread:
                tolerance = float(self.spread[chosen])  # the subspace of a fairer point
            problem = problem.with_tolerance(tolerance)
        elif solution.certificate.goal == "bounds":
            largest = float(self.largest[chosen])
            bound = max(-largest if problem.measure == "variance" else largest, 0.0)
        fair = FairPCA.from_solution(
            problem,
            solution,
            missing_labels=self.missing_labels,
            random_state=self.random_state,
        )
        fair.bounds = bound  # one number, so that it can be fitted to rows with other groups, too
        return fair

    def hypervolume(self, reference: tuple[float, float] | None = None) -> float:
        """Area that the points dominate, in unfairness and extra loss.

        Parameters
        ----------
        reference : pair of float, default=None
            Unfairness and extra loss beyond which nothing counts. None is the unfairness of the
            first point and the extra loss of the last.

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
        0.504
        """
        own = (self.unfairness[0], self.extra_loss[-1])
        pair = np.asarray(own if reference is None else reference, dtype=np.float64)
        if pair.shape != (2,) or not np.isfinite(pair).all():
            raise ValueError(
                "reference must be two numbers, an unfairness and an extra loss, got "
                f"{reference!r}."
            )
        widest, costliest = pair.tolist()
        order = np.argsort(self.unfairness, kind="stable")
        edges = np.minimum(np.append(self.unfairness[order], widest), widest)
        heights = costliest - np.minimum.accumulate(self.extra_loss[order])
        return float(np.diff(edges) @ np.maximum(heights, 0.0))

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, as lists with one entry for each point."""
        return columns_of(self)

    def to_frame(self) -> Any:
        """The points as the rows of a pandas data frame."""
        frame = import_pandas().DataFrame(self.to_dict())
        frame.index.name = "point"
        return frame

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return laid_out(self.text_parts())

    def text_parts(self) -> list[TextTable | str]:
        """What is printed: a table of some points, and the sentences below it."""
        return [TextTable(*cells_of(self)), *sentences_of(self)]

    def _repr_html_(self) -> str:
        sentences = (f"<p>{html.escape(sentence)}</p>" for sentence in sentences_of(self))
        return html_table(*cells_of(self)) + "".join(sentences)
