"""ParetoFront: every trade-off between total loss and fairness; pareto_front finds it for rows."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpca._linalg.types import Array
from fairpca.criteria import AtMost, Criterion, Equal
from fairpca.data import GroupedData, prepare_data
from fairpca.exceptions import FairnessWarning
from fairpca.fair_pca import FairPCA
from fairpca.generalization.cautions import warn_of_few_rows, warn_of_one_group
from fairpca.group_table import NO_CHANGE, TIED
from fairpca.groups import GROUPINGS
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers import ExactSolver, end_of_front, sweep
from fairpca.text import Printed, TextTable, distinct_texts, formatted, number_format
from fairpca.validation import (
    Progress,
    check_choice,
    check_components,
    check_flag,
    check_number,
    check_progress,
    check_whole_number,
    import_pandas,
)

_SHOWN_POINTS = 8
"""Points in the printed table of a front."""


@dataclass(frozen=True, eq=False, repr=False)
class ParetoFront(Printed):
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
        The problem. Its criterion defines unfairness: the largest measure of a group for
        `MinMax`, the spread for `Equal`.
    solutions : tuple of Solution
        By falling unfairness: the first has the least total loss of all (ordinary PCA, unless
        the problem has ``centering="group"``), the last the smallest unfairness that was found.
        Where the first is as fair as can be there is only one.
    missing_labels, solver : str, ExactSolver
        As given to `pareto_front`.

    See Also
    --------
    fairpca.plotting.FrontDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, ParetoFront, Problem
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> problem = Problem(GroupMoments.from_rows(X, ["a"] * 100 + ["b"] * 200), n_components=2)
    >>> front = ParetoFront.from_problem(problem, n_points=5)
    >>> front
             largest    of its    total    extra
    point  disparity  variance     loss     loss   spread   status
    --------------------------------------------------------------
    0        14.4909   54.30 %  54.87 %   0.00 %  14.4176  optimal
    1        12.5786   47.13 %  56.11 %   2.26 %  11.0384  optimal
    2        10.6662   39.97 %  57.91 %   5.54 %   7.4312  optimal
    3         8.7539   32.80 %  59.89 %   9.14 %   3.7499  optimal
    4         6.8415   25.64 %  62.03 %  13.05 %   0.0000  optimal
    --------------------------------------------------------------
    5 of 5 points proven optimal. The fairest:
    Proven optimal: in every subspace of this dimension some group has a disparity
    of at least 6.84153, and here none has more than 6.84153 (25 % of the variance
    of all rows).
    """

    problem: Problem
    solutions: tuple[Solution, ...]
    missing_labels: str = "error"
    solver: ExactSolver = field(default_factory=ExactSolver)

    @classmethod
    def from_problem(
        cls,
        problem: Problem,
        n_points: int = 50,
        *,
        missing_labels: str = "error",
        solver: ExactSolver | None = None,
        progress: Progress | None = None,
    ) -> ParetoFront:
        """The front of a problem.

        Parameters
        ----------
        problem : Problem
            Its criterion is `MinMax`, for a front over the largest measure of a group, or `Equal`,
            for one over the largest difference between two; a tolerance and a limit on the extra
            loss do not matter.
        n_points : int, default=50
            How many points, from the least total loss to the smallest unfairness; 1 is the former
            alone.
        missing_labels : {"error", "group", "drop"}, default="error"
            A parameter of the estimators of points.
        solver, progress : as for `fairpca.solvers.sweep`
            When points are good enough and when time is up, and the callback for each point.

        Returns
        -------
        ParetoFront
        """
        check_progress(progress)
        problem = problem.with_criterion(end_of_front(problem.criterion))
        solver = solver or ExactSolver()
        solutions = sweep(problem, int(n_points), solver, progress)
        return cls(problem, tuple(solutions), missing_labels, solver)

    @property
    def over(self) -> str:
        """What unfairness is: "largest", the largest measure of a group, or "spread"."""
        return "spread" if isinstance(self.problem.criterion, Equal) else "largest"

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
        """Largest measure of a group at each point, what is kept with a minus sign; (n,)."""
        return np.asarray(self.measures.max(axis=1))

    @cached_property
    def worst_group(self) -> NDArray[np.intp]:
        """Position of the worst-off group, which has the largest measure, at each point; (n,).

        Of several it is the one that has the largest at the first point.
        """
        order = np.argsort(-self.measures[0], kind="stable")
        tied = self.largest - TIED * np.abs(self.largest)
        return np.asarray(order[(self.measures[:, order] >= tied[:, None]).argmax(axis=1)])

    @property
    def worst_share(self) -> Array:
        """The measure of that group as a share of its variance, as it is shown; (n,)."""
        problem, group = self.problem, self.worst_group
        shown = shown_measures(problem, self.measures)[np.arange(len(self)), group]
        traces = problem.traces[group]
        unit = 1.0 if problem.goal.measured.relative else np.where(traces > 0.0, traces, 1.0)
        return np.asarray(shown / unit)

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
        """No subspace is less unfair than this; -inf of ordinary PCA alone."""
        certificate = self.solutions[-1].certificate
        if self.over == "spread":
            return certificate.violation_bound
        return certificate.lower_bound if certificate.goal == self.problem.goal.name else -np.inf

    def select(
        self,
        index: int | None = None,
        *,
        max_largest: float | None = None,
        max_spread: float | None = None,
        max_extra_loss: float | None = None,
        knee: bool = False,
    ) -> int:
        """The number of the point that meets one condition; give exactly one.

        Parameters
        ----------
        index : int, default=None
            The number itself; negative ones count from the fairest.
        max_largest, max_spread : float, default=None
            The cheapest point whose largest measure, or whose spread, is no larger, up to rounding
            (see `Certificate`). With a measure of what groups keep, `max_largest` is what each of
            them keeps at least, as the bounds of `AtMost` are.
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
        >>> from fairpca import pareto_front
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
            sign = self.problem.goal.measured.sign
            return self._cheapest(self.worst_name, self.largest, sign * float(max_largest), sign)
        if max_extra_loss is not None:
            check_number("max_extra_loss", max_extra_loss, least=0.0)
            cheap = self.extra_loss <= float(max_extra_loss)
            # Of equally fair points the cheapest.
            return int(np.lexsort((self.total_loss, self.unfairness, ~cheap))[0])
        points = np.array([self.unfairness, self.total_loss])
        points -= points.min(axis=1, keepdims=True)
        widths = points.max(axis=1, keepdims=True)
        return int((points / np.where(widths > 0.0, widths, 1.0)).sum(axis=0).argmin())

    def _cheapest(self, name: str, levels: Array, most: float, sign: float = 1.0) -> int:
        fair = levels <= most + self.problem.negligible_spread
        if not fair.any():
            limit, end = ("most", "smallest") if sign > 0.0 else ("least", "largest")
            raise ValueError(
                f"No point has a {name} of at {limit} {sign * most:g}: the {end} is "
                f"{sign * levels.min():g}."
            )
        # Of equally cheap points the fairest.
        return int(np.lexsort((levels, self.total_loss, ~fair))[0])

    def estimator(self, index: int | None = None, **wish: Any) -> FairPCA:
        """A fitted `FairPCA` for one point.

        Its criterion is that of the point, `AtMost` with the largest measure or `Equal` with the
        spread as tolerance, so that fitting it to the same rows finds the same subspace, or with
        more than two groups one as good as the certificate says. That of the fairest point over
        the largest measure is `MinMax`.

        Parameters
        ----------
        index, **wish : as for `select`
            The point.

        Returns
        -------
        FairPCA

        Examples
        --------
        >>> from fairpca import pareto_front
        >>> from fairpca.datasets import load_adult
        >>> adult = load_adult()
        >>> groups = adult.sensitive_features
        >>> front = pareto_front(adult.data, sensitive_features=groups, n_components=3)
        >>> front.estimator(knee=True).transform(adult.data).shape
        (32561, 3)
        """
        chosen = self.select(index, **wish)
        solution, problem = self.solutions[chosen], self.problem
        measured = problem.goal.measured
        if self.over == "spread":
            tolerance = solution.certificate.tolerance
            if self.spread[chosen] < tolerance - problem.negligible_spread:
                tolerance = float(self.spread[chosen])  # the subspace of a fairer point
            problem = problem.with_criterion(Equal(tolerance, measured.name))
        elif solution.certificate.goal != problem.goal.name:
            # One number, so that it can be fitted to rows with other groups, too.
            bound = max(measured.sign * float(self.largest[chosen]), 0.0)
            problem = problem.with_criterion(AtMost(bound, measured.name))
        return FairPCA.from_solution(
            problem,
            solution,
            missing_labels=self.missing_labels,
            random_state=self.solver.random_state,
        )

    @property
    def worst_name(self) -> str:
        """What the measure of the worst-off group is called, such as "largest disparity"."""
        which = "least" if self.problem.goal.measured.is_kept else "largest"
        return f"{which} {self[0].certificate.measure}"

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, as lists with one entry for each point."""
        moments, noun = self.problem.moments, self[0].certificate.measure
        names = distinct_texts(moments.labels, moments.group_names)
        columns: dict[str, list[Any]] = {
            self.worst_name: np.abs(self.largest).tolist(),
            "share of its variance": self.worst_share.tolist(),
            "spread": self.spread.tolist(),
            "total loss": self.total_loss.tolist(),
            "extra loss": self.extra_loss.tolist(),
            "relative gap": self.relative_gap.tolist(),
            "status": [solution.certificate.status for solution in self],
        }
        shown = shown_measures(self.problem, self.measures)
        for name, measures in zip(names, shown.T, strict=True):
            columns[f"{noun} of {name}"] = measures.tolist()
        return columns

    def to_frame(self) -> Any:
        """The points as the rows of a pandas data frame."""
        frame = import_pandas().DataFrame(self.to_dict())
        frame.index.name = "point"
        return frame

    def text_parts(self) -> list[TextTable | str]:
        """What is printed: a table of some points, how many are proven, and the fairest's proof."""
        n, proven = len(self), sum(each.certificate.status == "optimal" for each in self)
        some = f"The table has {_SHOWN_POINTS} of {n} points. " if n > _SHOWN_POINTS else ""
        gap = "" if proven == n else f", the largest gap is {self.relative_gap.max():.2g}"
        said = f"{some}{proven} of {n} points proven optimal{gap}. The fairest:"
        return [TextTable(*self._cells()), said, *self[-1].certificate.sentences()]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Head and a few of the points, the first and the last among them."""
        few = np.linspace(0, len(self) - 1, min(len(self), _SHOWN_POINTS)).round().astype(int)
        largest, relative = np.abs(self.largest), self.problem.goal.measured.relative
        form = number_format([largest, self.spread])
        least = NO_CHANGE * max(largest.max(), self.spread.max())
        variance = float(self.problem.weights @ self.problem.traces)

        def per_cent(shares: Array) -> list[str]:
            texts = (formatted(100 * share, ".2f", 100 * NO_CHANGE) for share in shares[few])
            return [f"{text} %" for text in texts]

        def level(values: Array) -> list[str]:
            if relative:
                return per_cent(values)
            return [formatted(value, form, least) for value in values[few]]

        worst = {self.worst_name: level(largest)}
        if not relative:
            worst["of its variance"] = per_cent(self.worst_share)
        losses = {
            "total loss": per_cent(self.total_loss / (variance if variance > 0.0 else 1.0)),
            "extra loss": per_cent(self.extra_loss),
        }
        spread = {"spread": level(self.spread)}
        parts = (worst, losses, spread) if self.over == "largest" else (spread, losses, worst)
        columns = {name: texts for part in parts for name, texts in part.items()}
        heads = ["\n".join(name.rpartition(" ")[::2]) for name in columns]
        rows = [
            [str(i), *(texts[j] for texts in columns.values()), self[i].certificate.status]
            for j, i in enumerate(few)
        ]
        return ["point", *heads, "status"], rows


def shown_measures(problem: Problem, measures: Array) -> Array:
    """Measures as they are shown: what is kept has no minus sign."""
    if not problem.goal.measured.is_kept:
        return measures
    return np.asarray(problem.affine.constants - measures)


def pareto_front(
    X: Any,
    *,
    sensitive_features: Any,
    n_components: int | float,
    n_points: int = 50,
    criterion: str | Criterion = "minmax",
    sample_weight: ArrayLike | None = None,
    groups: str = "intersections",
    keep_sensitive: bool = False,
    missing_labels: str = "error",
    solver: ExactSolver | None = None,
    progress: Progress | None = None,
) -> ParetoFront:
    """The exact trade-off between total loss and fairness.

    Parameters
    ----------
    X, sensitive_features : as for `FairPCA.fit`
        Rows in memory, and their groups.
    n_components : int or float
        Dimension of the subspaces: a number from 1 to the number of columns, or a share in (0, 1),
        meaning the smallest dimension at which every group keeps that share of its variance at the
        fairest point (the dimension of `FairPCA` with the same choices).
    n_points : int, default=50
        How many points, evenly spaced in unfairness, from the least total loss to the fairest.
    criterion : {"minmax", "equal"} or Criterion, default="minmax"
        What unfairness is: with `MinMax` the largest disparity of a group, so that no group is
        made worse off for the sake of equality alone; with `Equal` the largest difference between
        the disparities of two groups, as in the paper. As objects they take another `measure`.
    sample_weight : as for `FairPCA.fit`
        The weights of the rows.
    groups, keep_sensitive, missing_labels : as for `FairPCA`
        What the sensitive columns make groups of.
    solver : ExactSolver, default=None
        Says when a point is good enough (`gap`), when time is up (`time_limit`), and what the
        search for more than two groups starts from; None is ``ExactSolver()``. Points that are not
        ready when time is up have the subspace of the next fairer one that is, and a certificate of
        their own. With a share as `n_components` each search for its dimension has the same limit.
    progress : callable, default=None
        Called with what is being done, how many parts of it are, and how many there are, from
        before the first search to the last point.

    Returns
    -------
    ParetoFront
        Print it, choose a point, and take its `FairPCA`. The printed total loss is a share of the
        variance of all rows, and beside the largest measure stands its share of that group's
        variance.

    See Also
    --------
    fairpca.FairPCA : One point, with `MinMax(max_extra_loss=…)` or `AtMost`.
    fairpca.plotting.FrontDisplay : Draws it.

    Examples
    --------
    >>> from fairpca import pareto_front
    >>> from fairpca.datasets import load_adult
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult(sensitive="race")
    >>> X = StandardScaler().set_output(transform="pandas").fit_transform(adult.data)
    >>> front = pareto_front(X, sensitive_features=adult.sensitive_features, n_components=5)
    >>> print(front)
             largest    of its    total   extra
    point  disparity  variance     loss    loss   spread   status
    -------------------------------------------------------------
    0        12.2988   40.51 %  50.09 %  0.00 %  11.7952  optimal
    7        10.7049   35.26 %  50.11 %  0.03 %  10.1375  optimal
    14        9.1110   30.01 %  50.15 %  0.11 %   8.4821  optimal
    21        7.5171   24.76 %  50.21 %  0.24 %   6.8285  optimal
    28        5.9232   19.51 %  50.31 %  0.43 %   5.1766  optimal
    35        4.3293   14.26 %  50.44 %  0.70 %   3.5262  optimal
    42        2.7354    9.01 %  50.76 %  1.34 %   1.8489  optimal
    49        1.1415    3.76 %  52.02 %  3.86 %   0.0786  optimal
    -------------------------------------------------------------
    The table has 8 of 50 points. 50 of 50 points proven optimal. The fairest:
    Proven optimal: in every subspace of this dimension some group has a disparity
    of at least 1.14148, and here none has more than 1.14148 (8.15 % of the variance
    of all rows).
    >>> fair = front.estimator(max_extra_loss=0.01)
    >>> fair.group_table_.disparity.round(2).tolist()
    [3.19, 2.38, 0.81, 3.19, 0.84]
    """
    _, problem = prepare_front(
        X,
        n_points,
        n_components=n_components,
        criterion=criterion,
        solver=solver,
        progress=progress,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        missing_labels=missing_labels,
        groups=groups,
        keep_sensitive=keep_sensitive,
    )
    return ParetoFront.from_problem(
        problem, n_points, missing_labels=missing_labels, solver=solver, progress=progress
    )


def prepare_front(
    X: Any,
    n_points: object,
    *,
    n_components: int | float,
    criterion: str | Criterion,
    solver: ExactSolver | None,
    progress: Progress | None,
    **rows: Any,
) -> tuple[GroupedData, Problem]:
    """The rows of a front and its problem; `rows` are further parameters of `prepare_data`."""
    if not (solver is None or isinstance(solver, ExactSolver)):
        raise ValueError(f"solver must be an ExactSolver or None, got {solver!r}.")
    check_components(n_components)
    check_whole_number("n_points", n_points, least=2)
    end_of_front(criterion)
    check_choice("groups", rows["groups"], GROUPINGS[:-1])  # a front of one group is a point
    check_flag("keep_sensitive", rows["keep_sensitive"])
    check_progress(progress)
    if rows["sensitive_features"] is None:
        raise ValueError("sensitive_features must name the group of each row, got None.")
    grouped_data = prepare_data(X, n_components=n_components, **rows)
    return grouped_data, front_problem(grouped_data, n_components, criterion, solver, progress)


def front_problem(
    grouped_data: GroupedData,
    n_components: int | float,
    criterion: str | Criterion,
    solver: ExactSolver | None,
    progress: Progress | None,
) -> Problem:
    """The problem of rows whose groups are warned of; a share as dimension is searched for."""
    warn_of_one_group(grouped_data.moments)
    criterion = end_of_front(criterion)
    if not isinstance(n_components, Integral):
        fair = FairPCA(n_components, criterion=criterion, solver=solver or ExactSolver())

        def listener(done: int, total: int, **found: float) -> None:
            if progress is not None:
                progress("finding the dimension: search", done, total)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)  # as follows
            n_components = fair.fit_data(grouped_data, listener).n_components_
    problem = grouped_data.problem(int(n_components), criterion=criterion)
    warn_of_few_rows(problem)
    return problem
