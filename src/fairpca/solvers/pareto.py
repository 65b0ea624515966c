"""The paper's algorithm: gradient descent along a direction that improves every objective."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from fairpca._linalg.dense import direction_of, polar_factor, qr_factor
from fairpca._linalg.types import NEGLIGIBLE, ROUNDING, Array
from fairpca.criteria import Equal
from fairpca.objectives import (
    DISPARITIES,
    FEW_GROUPS,
    PENALTIES,
    Differences,
    Objective,
    PaperObjectives,
    SeparateObjectives,
)
from fairpca.problem import Problem
from fairpca.solution import Progress, Solution
from fairpca.solvers._dual import ARMIJO
from fairpca.solvers.conclude import conclude
from fairpca.validation import check_choice, check_seed

# Descent for several objectives at once: the loop of the paper's Algorithm 1.
# It knows nothing of PCA: objectives and retraction are given, so it also runs in a flat space,
# where the paper's theorems can be checked.

_HALVINGS = 60
"""So often a step is halved before it is given up: its change is below rounding."""

STEPS = ("adaptive", "sqrt", "constant", "backtracking", "equation 16")
"""How steps are chosen; "adaptive" is in `_adaptive`, the others here."""

STOPPED = "stopped by a callback"
STATIONARY = "ended where no direction improves all objectives: Pareto stationary"


@dataclass(frozen=True, eq=False, repr=False)
class Descent:
    """Where a run ended and how it went.

    Attributes
    ----------
    point : array
        The last point.
    values : array of shape (steps + 1, m)
        Objectives at every point.
    norms : array of shape (evaluations,)
        Norm of the direction at every point at which it was found.
    steps : array of shape (steps,)
        Step lengths.
    multipliers : array of shape (evaluations, m)
        Weights of the gradients in the direction.
    stationary : bool
        Whether the run ended because no direction improves all objectives.
    message : str
        Why it ended.
    """

    point: Array
    values: Array
    norms: Array
    steps: Array
    multipliers: Array
    stationary: bool
    message: str

    def __repr__(self) -> str:
        return f"Descent({len(self.steps)} steps, message={self.message!r})"


def descend(
    evaluate: Callable[[Array], tuple[Array, Array]],
    values_of: Callable[[Array], Array],
    start: Array,
    *,
    retract: Callable[[Array], Array],
    step: str,
    step_size: float,
    normalize: bool,
    zero: Array,
    tol: float,
    max_iter: int,
    armijo: float = ARMIJO,
    progress: Callable[[], bool] | None = None,
) -> Descent:
    """Follow the min-norm direction until it vanishes or the iterations are used up.

    Gradients with a norm of at most `zero`, one for each, count as zero: there an objective is at a
    stationary point of its own, and scaling rounding errors to length one would make them a
    direction.
    """
    point, shortest = start, step_size * 2.0**-_HALVINGS
    values, gradients = evaluate(point)
    m = len(values)
    record = [values]
    norms, steps, multipliers = [], [], []
    stationary, message = False, f"stopped after {max_iter} steps"
    searches = step in ("backtracking", "equation 16")
    # The paper tests its condition before it projects, and from p = 1.
    printed = step == "equation 16"
    first = step_size / 2.0 if printed else step_size
    for t in range(1, max_iter + 1):
        flat = gradients.reshape(m, -1)
        flat_direction, weights, _ = direction_of(flat, flat, normalize=normalize, zero=zero)
        norm = math.sqrt(flat_direction @ flat_direction)
        norms.append(norm)
        multipliers.append(weights)
        if norm <= tol:
            stationary, message = True, STATIONARY
            break
        direction = flat_direction.reshape(point.shape)
        length = first / math.sqrt(t) if step == "sqrt" else first
        if searches:
            # Halve the step until every objective falls as its slope promises.
            falls = armijo * (flat @ flat_direction)
            while length > shortest:
                trial = point + length * direction
                trial = trial if printed else retract(trial)
                if (values_of(trial) <= values + length * falls).all():
                    break
                length /= 2.0
            else:
                message = "stopped where no step improves all objectives enough"
                break
        point = retract(point + length * direction)
        steps.append(length)
        values, gradients = evaluate(point)
        record.append(values)
        if progress is not None and progress():
            message = STOPPED
            break
    return Descent(
        point,
        np.array(record),
        np.array(norms),
        np.array(steps),
        np.array(multipliers).reshape(-1, m),
        stationary,
        message,
    )


# Descent for several objectives with steps that fit the curvature, for the paper's objectives.
# A run begins with the paper's steps 1/sqrt(t), which are long: they carry it past the first
# fair subspaces that it meets. Then each step is as long as the curvature along the last one
# says (Barzilai and Borwein, 1988; for several objectives Morovati, Pourkarimi and Basirzadeh,
# 2016), and is halved until no objective is above its largest value in the last few steps
# (Grippo, Lampariello and Lucidi, 1986).
# Where a difference of disparities is zero its penalty cannot fall, and no direction improves
# all objectives: every fair subspace is stationary in that sense, whatever it loses. But others
# may still be better in one objective and worse in none, so that they dominate it. Differences
# within reach of zero are therefore *held* at zero, and the other objectives improve along the
# subspaces that keep them there. A run ends where nothing improves in that sense either.

_EXPLORING = 200
"""Steps of the length 1/sqrt(t) at the beginning. After 100 some runs end less fair, after 300 none
ends fairer (Adult and Credit)."""

_MEMORY = 5
"""Steps among which the largest value of an objective is not to be exceeded."""

_WITHIN_REACH = 6
"""So often a step is halved because of differences alone before these are held at zero."""

_DEPENDENT = 1e-9
"""Singular value, relative to the largest, of slopes that depend on each other."""

_LONGEST = 10.0
"""The longest step that the curvature asks for."""

_RETURNING = 5
"""The most steps back to where held differences are zero; Newton's method takes two or three."""


@dataclass(frozen=True, eq=False)
class _State:
    """A point with its objectives and differences; gradients are rows.

    `pulls` are what a direction is made of: gradients, where these are scaled to length one those
    of the distances of differences from zero, which have the same direction for every penalty.
    """

    point: Array
    values: Array
    gradients: Array
    pulls: Array
    differences: Array
    slopes: Array


@dataclass(frozen=True, eq=False)
class AdaptiveDescent:
    """How to descend; `unit` is tr(A), to which rounding is relative."""

    evaluate: Callable[[Array], tuple[Array, Array]]
    values_of: Callable[[Array], Array]
    differences: Callable[[Array], Differences]
    retract: Callable[[Array], Array]
    normalize: bool
    zero: Array
    tol: float
    unit: float

    def run(
        self,
        start: Array,
        *,
        step_size: float,
        max_iter: int,
        progress: Callable[[], bool] | None = None,
    ) -> Descent:
        """Descend from a start until nothing improves or the steps are used up."""
        first = descend(
            self.evaluate,
            self.values_of,
            start,
            retract=self.retract,
            step="sqrt",
            step_size=step_size,
            normalize=self.normalize,
            zero=self.zero,
            tol=self.tol,
            max_iter=min(_EXPLORING, max_iter),
            progress=progress,
        )
        if first.message == STOPPED:
            return first
        state = self._state(first.point)
        held = np.zeros(len(state.differences), dtype=bool)
        values, norms, steps = list(first.values), list(first.norms), list(first.steps)
        weights = list(first.multipliers)
        long_step = length = step_size / math.sqrt(len(steps) + 1.0)
        recent, may_hold = [state.values], True
        zero = self.zero.copy()
        if self.normalize:
            # Scaled to length one, a gradient does not vanish where its objective is least.
            zero = np.maximum(zero, self.tol * self.unit)
            zero[len(zero) - len(held) :] = ROUNDING * self.unit
        stationary, message = False, f"stopped after {max_iter} steps"
        for _ in range(len(steps), max_iter):
            held = self._held(state, held)
            active = self._active(held, len(state.values))
            projected = _along(state.pulls[active], state.slopes[held])
            direction, shares, divisors = direction_of(
                state.pulls[active],
                projected,
                normalize=self.normalize,
                zero=zero[active],
            )
            norms.append(math.sqrt(direction @ direction))
            weights.append(np.zeros(len(active)))
            weights[-1][active] = shares
            if norms[-1] <= self.tol:
                stationary, message = True, STATIONARY
                break
            trial, length, blocked = self._search(
                state, direction, length, np.max(recent, axis=0), held, may_hold
            )
            if blocked is not None:
                # These differences stand in the way: from here on they are held at zero.
                there = self._state(self._returned(state.point, held | blocked))
                may_hold = self._holds(there.differences, held | blocked)
                if may_hold:
                    state, held, length = there, held | blocked, long_step
                    recent = []
            elif trial is None:
                message = "stopped where rounding hides all improvement"
                break
            else:
                there, taken, may_hold = self._state(trial), length, True
                fitting = self._fitting(state, there, projected, shares / divisors, active, held)
                length = 2.0 * taken if fitting is None else fitting
                state = there
            recent = [*recent[1 - _MEMORY :], state.values]
            values.append(state.values)
            steps.append(0.0 if blocked is not None else taken)
            if progress is not None and progress():
                message = STOPPED
                break
        return Descent(
            state.point,
            np.array(values),
            np.array(norms),
            np.array(steps),
            np.array(weights),
            stationary,
            message,
        )

    def _state(self, point: Array) -> _State:
        values, gradients = self.evaluate(point)
        gradients = gradients.reshape(len(values), point.size)
        differences, slopes = self.differences(point)
        slopes = slopes.reshape(len(differences), point.size)
        pulls = gradients
        if self.normalize:
            pulls = gradients.copy()
            pulls[len(values) - len(slopes) :] = np.sign(differences)[:, None] * slopes
        return _State(point, values, gradients, pulls, differences, slopes)

    def _held(self, state: _State, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those that are held, those that are zero, and those that these leave no other choice."""
        sizes = np.abs(state.differences)
        held = held | (sizes <= NEGLIGIBLE * self.unit)
        if held.any() and not held.all():
            left = np.linalg.norm(_along(state.slopes, state.slopes[held]), axis=1)
            bound = left <= _DEPENDENT * np.linalg.norm(state.slopes, axis=1)
            held = held | (bound & (sizes <= len(held) * NEGLIGIBLE * self.unit))
        return held

    @staticmethod
    def _active(held: NDArray[np.bool_], m: int) -> NDArray[np.bool_]:
        """Which of m objectives are to improve: all but those whose differences are held."""
        active = np.ones(m, dtype=bool)
        active[m - len(held) :] = ~held
        return active

    def _search(
        self,
        state: _State,
        direction: Array,
        length: float,
        largest: Array,
        held: NDArray[np.bool_],
        may_hold: bool,
    ) -> tuple[Array | None, float, NDArray[np.bool_] | None]:
        """Shorten a step until no objective is above its largest value of late.

        Returns the new point, if there is one, the length, and the differences that alone are in
        the way of a step that has become short.
        """
        m, p = len(largest), len(held)
        active = self._active(held, m)
        falls = ARMIJO * (state.gradients @ direction)
        # A penalty may be far smaller than what is lost in total.
        rounding = ROUNDING * np.where(np.arange(m) < m - p, self.unit, np.abs(largest))
        step = direction.reshape(state.point.shape)
        for halved in range(_HALVINGS):
            trial = self._returned(self.retract(state.point + length * step), held)
            above = active & (self.values_of(trial) > largest + length * falls + rounding)
            stays = not held.any() or self._holds(self.differences(trial)[0], held)
            if stays and not above.any():
                return trial, length, None
            if may_hold and halved >= _WITHIN_REACH and stays and not above[: m - p].any():
                return None, length, above[m - p :]
            length /= 2.0
        return None, length, None

    def _holds(self, differences: Array, held: NDArray[np.bool_]) -> bool:
        return bool((np.abs(differences[held]) <= NEGLIGIBLE * self.unit).all())

    def _returned(self, point: Array, held: NDArray[np.bool_]) -> Array:
        """The point, moved to where held differences are zero, by Newton's method."""
        if not held.any():
            return point
        for _ in range(_RETURNING):
            differences, slopes = self.differences(point)
            missed, slopes = differences[held], slopes[held].reshape(-1, point.size)
            if (np.abs(missed) <= ROUNDING * self.unit).all():
                break
            back = np.linalg.lstsq(slopes, -missed, rcond=_DEPENDENT)[0]
            point = self.retract(point + back.reshape(point.shape))
        return point

    def _fitting(
        self,
        state: _State,
        there: _State,
        projected: Array,
        weights: Array,
        active: NDArray[np.bool_],
        held: NDArray[np.bool_],
    ) -> float | None:
        """The length that fits the curvature between two points; None where it is not positive."""
        moved = (there.point - state.point).ravel()
        change = weights @ (_along(there.pulls[active], there.slopes[held]) - projected)
        curvature = float(moved @ change)
        if curvature <= 0.0:
            return None
        return min(float(moved @ moved) / curvature, _LONGEST)


def _along(gradients: Array, slopes: Array) -> Array:
    """The parts of gradients that keep to where differences with these slopes do not change."""
    if not len(slopes):
        return gradients
    _, sizes, axes = np.linalg.svd(slopes, full_matrices=False)
    axes = axes[sizes > _DEPENDENT * sizes[0]]
    kept: Array = gradients - (gradients @ axes.T) @ axes
    return kept


_MUCH_ROOM = 0.01
"""Share of the total loss from which a stationary point is worth a warning."""


@dataclass(frozen=True)
class ParetoDescent:
    """Algorithm 1 of the paper, "Pareto Fair PCA", with every variant that its text names.

    Each step solves a small quadratic program for the direction in which all objectives fall
    (equation 17), moves along it and projects back on orthonormal bases, until no direction
    improves all objectives: a Pareto stationary point. The certificate says how far the total loss
    is from the smallest possible at the spread that was reached. That is needed: with many
    objectives most subspaces are Pareto stationary, good ones or not. A run that took no step, that
    ended early or far from the front, or that is less fair than ordinary PCA, gives a
    ConvergenceWarning.

    The defaults are ours; `as_printed` has those of the paper.

    Parameters
    ----------
    objectives : {"auto", "pairwise", "adjacent", "pooled", "single"} or list, default="auto"
        What falls beside the total loss. "pairwise": the difference of every pair of groups, as in
        the paper. "adjacent": differences of neighbours in the order of disparities, which have the
        same directions and are fewer. "pooled": half the sum of all squared differences, one
        objective. "single": each disparity. "auto" is "adjacent" up to five groups and "pooled" for
        more, where differences one by one mostly end far from the front; with another penalty or
        with alpha it is "pairwise". Or a list of any objectives: see `fairpca.objectives`.
    penalty : {"squared", "absolute", "exponential"}, default="squared"
        The paper's psi, applied to disparities.
    alpha : float, "auto" or "pairs", default=0.0
        Regularisation ``alpha |U|^2`` of every objective (equation 19); "auto" is the smallest
        value that the paper's appendix admits for all pairs of groups, "pairs" the smallest for
        each of them. On orthonormal bases it is constant, so it changes only Euclidean directions.
    normalize : bool, default=True
        Whether gradients are scaled to length one before the direction is found (the paper's
        Remark 1).
    geometry : {"riemannian", "euclidean"}, default="riemannian"
        Whether gradients are projected on the directions that keep a basis orthonormal, or taken
        as they are, which is what the paper prints. Only the former vanish at stationary points.
    step : {"adaptive", "sqrt", "constant", "backtracking", "equation 16"}, default="adaptive"
        "sqrt" is ``step_size / sqrt(t)``, as in the paper's experiments; "constant" is
        `step_size`. "backtracking" is the first of ``step_size / 2^p``, p = 0, 1, ..., for which
        every objective falls enough; "equation 16" tests that before the projection, and from
        p = 1, as the paper prints it. "adaptive" begins as "sqrt", which carries a run past the
        first fair subspaces, and goes on with steps as long as the curvature says (Barzilai and
        Borwein), shortened until every objective falls.
    step_size : float, default=1.0
        Scale of the steps.
    start : {"random", "pca"} or array of shape (d, r), default="random"
        Where to start. Ordinary PCA is itself Pareto stationary for the Riemannian geometry.
    n_restarts : int, default=1
        Number of random starts. The end point that no other dominates and whose spread is
        smallest is returned; all stay in the history.
    tol : float, default=1e-7
        Norm of the direction that counts as zero; without normalisation, relative to tr(A). With
        0 exactly `max_iter` steps are taken, and nothing is said of where they end.
    max_iter : int, default=3000
        The most steps of a run.
    random_state : int or None, default=None
        Seed of the random starts. None is a fixed seed too.

    See Also
    --------
    fairpca.objectives.Objective : How to write objectives.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, ParetoDescent, Problem
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> problem = Problem(GroupMoments.from_rows(X, ["a"] * 100 + ["b"] * 200), n_components=2)
    >>> solution = ParetoDescent().solve(problem)
    >>> bool(np.ptp(solution.disparities) < problem.spread(problem.pca_basis))
    True
    >>> bool(solution.certificate.relative_gap < 1e-3)
    True
    """

    objectives: str | Sequence[Objective] = "auto"
    penalty: str = "squared"
    alpha: float | str = 0.0
    normalize: bool = True
    geometry: str = "riemannian"
    step: str = "adaptive"
    step_size: float = 1.0
    start: str | Array = "random"
    n_restarts: int = 1
    tol: float = 1e-7
    max_iter: int = 3000
    random_state: int | None = None

    name = "pareto"
    has_own_criterion = True

    def __post_init__(self) -> None:
        if isinstance(self.objectives, str):
            check_choice("objectives", self.objectives, ("auto", *DISPARITIES))
            check_choice("penalty", self.penalty, tuple(PENALTIES))
        elif len(self.objectives) == 0:
            raise ValueError("objectives must name at least one objective.")
        check_seed(self.random_state)
        check_choice("geometry", self.geometry, ("riemannian", "euclidean"))
        check_choice("step", self.step, STEPS)
        if self.step == "adaptive" and self.geometry != "riemannian":
            raise ValueError(
                "step='adaptive' goes with geometry='riemannian', whose directions vanish where "
                "nothing improves; with geometry='euclidean' choose step='sqrt', or take "
                "ParetoDescent.as_printed()."
            )
        if isinstance(self.start, str):
            check_choice("start", self.start, ("random", "pca"))
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ("auto", "pairs"))
            if self.alpha == "pairs" and self.objectives not in ("auto", "pairwise"):
                raise ValueError("alpha='pairs' goes with objectives='pairwise'.")
        for name, valid, words in (
            ("step_size", self.step_size > 0, "positive"),
            ("tol", self.tol >= 0, "at least 0"),
            ("max_iter", self.max_iter >= 1, "at least 1"),
            ("n_restarts", self.n_restarts >= 1, "at least 1"),
        ):
            if not valid:
                raise ValueError(f"{name} must be {words}, got {getattr(self, name)!r}.")

    @classmethod
    def as_printed(
        cls, start: str | Array = "pca", max_iter: int = 1000, **choices: Any
    ) -> ParetoDescent:
        """Algorithm 1 exactly as the paper prints it.

        Euclidean gradients, each scaled to length one (Remark 1), the steps ``1 / sqrt(t)`` of its
        experiments, and exactly `max_iter` of them: the paper's T. Its direction does not vanish at
        stationary points, so where a run ends is up to T.

        Parameters
        ----------
        start : {"pca", "random"} or array of shape (d, r), default="pca"
            The paper's U_0, of which it says nothing.
        max_iter : int, default=1000
            Number of steps.
        **choices
            What the paper names beside it: `objectives` "pairwise" (equation 12, the default) or
            "single" (equation 9), another `penalty`, `alpha` "auto" or "pairs" (equation 19), the
            `step` of "equation 16", and the `random_state` of a random start.

        Returns
        -------
        ParetoDescent
            A solver with these choices.

        Examples
        --------
        >>> from fairpca import ParetoDescent
        >>> printed = ParetoDescent.as_printed(max_iter=10_000)
        >>> printed.geometry, printed.step, printed.tol
        ('euclidean', 'sqrt', 0.0)
        """
        printed: dict[str, Any] = {
            "objectives": "pairwise",
            "geometry": "euclidean",
            "step": "sqrt",
        }
        return cls(**printed | choices, start=start, tol=0.0, max_iter=max_iter)

    @property
    def n_steps(self) -> int:
        """The most steps of all runs together, for progress bars."""
        return self.max_iter * (self.n_restarts if self._is_random else 1)

    def solve(self, problem: Problem, progress: Progress | None = None) -> Solution:
        """Descend from every start and certify the best end point.

        Its objectives are those of "equal", so its certificate is that of "equal" too.
        """
        problem = problem.with_criterion(Equal(problem.goal.tolerance, problem.goal.measure))

        runs = [self._descend(problem, basis, progress) for basis in self._starts(problem)]
        # Among the ends that no other dominates, the one with the smallest spread.
        kept = np.flatnonzero(non_dominated(np.array([run.values[-1] for run in runs])))
        best = int(min(kept, key=lambda i: problem.spread(runs[i].point)))
        found = conclude(
            self,
            problem,
            runs[best].point,
            message=runs[best].message,
            n_iter=len(runs[best].steps),
            n_eigen=problem.n_groups,
            objectives=self._vector(problem).names(problem),
            runs=tuple(runs),
            best=best,
        )
        self._warn(problem, runs[best], found)
        return found

    def _warn(self, problem: Problem, run: Descent, solution: Solution) -> None:
        """Say where a run ended too early or far from the front, or where PCA is fairer."""
        said = []
        if self.tol == 0.0:
            return
        unequal = solution.certificate.spread > problem.negligible_spread
        pooling = "objectives='pooled'"
        if not isinstance(self.objectives, str) or self._disparity(problem) == "pooled":
            pooling = ""  # no remedy: it would ask for another thing, or change nothing
        if run.stationary and unequal and not len(run.steps):
            said.append(
                "Pareto descent took no step: where it starts no direction improves all "
                "objectives, which does not make the start a good subspace. Take another start"
                + (f", or {pooling}." if pooling else ".")
            )
        if not run.stationary and run.message != STOPPED:
            said.append(
                f"Pareto descent {run.message} and is not at a Pareto stationary point: the "
                f"direction has the norm {run.norms[-1]:.2g}, where tol={self.tol:g}. Raise "
                "max_iter, take another start, or standardise the columns."
            )
        if isinstance(self.objectives, str):
            room = self._room(problem, run, solution)
            if run.stationary and room > _MUCH_ROOM:
                said.append(
                    "Pareto descent ended where no direction improves all objectives, but may be "
                    f"far from the front: a subspace with up to {100 * room:.2g} % less total loss "
                    "and no larger differences between groups is not ruled out. Take n_restarts=10"
                    + (f", {pooling}," if pooling else "")
                    + " or solver='exact'."
                )
            spread, plain = problem.spread(run.point), problem.spread(problem.pca_basis)
            if spread > plain + NEGLIGIBLE * problem.scale:
                said.append(
                    f"The result of Pareto descent is less fair than ordinary PCA: disparities "
                    f"differ by {spread:.4g}, with PCA by {plain:.4g}. Take another start, more "
                    "steps, or solver='exact'."
                )
        if said:
            warnings.warn(" ".join(said), ConvergenceWarning, stacklevel=3)

    def _room(self, problem: Problem, run: Descent, solution: Solution) -> float:
        """By how much the total loss may be lower at what was reached, as a share of it.

        The certificate is about the spread. What pooled differences reach is the sum of their
        squares: at a stationary point its gradient, and that of the total loss, are opposite, which
        gives the multipliers of a bound for it.
        """
        if self._disparity(problem) != "pooled":
            return solution.certificate.relative_gap
        vector, disparities = self._vector(problem), solution.disparities
        total, pooled = np.linalg.norm(
            vector.evaluate(problem, run.point, _project)[1], axis=(1, 2)
        )
        if pooled <= ROUNDING * problem.scale**2:
            return solution.certificate.relative_gap
        slopes = problem.n_groups * (disparities - disparities.mean())
        weights = problem.weights + slopes * (total / pooled)
        least = problem.group_matrices.leading_sum_bound(weights, problem.n_components, run.point)
        return float(least - weights @ problem.kept(run.point)) / solution.total_loss

    @property
    def _is_random(self) -> bool:
        return isinstance(self.start, str) and self.start == "random"

    def _vector(self, problem: Problem) -> PaperObjectives | SeparateObjectives:
        if not isinstance(self.objectives, str):
            return SeparateObjectives(self.objectives)
        if isinstance(self.alpha, str):
            alpha = _appendix_alpha(problem, each_pair=self.alpha == "pairs")
            return PaperObjectives(self._disparity(problem), self.penalty, alpha)
        return PaperObjectives(self._disparity(problem), self.penalty, float(self.alpha))

    def _disparity(self, problem: Problem) -> str:
        """Which of `DISPARITIES` are the objectives."""
        if self.objectives != "auto":
            return str(self.objectives)
        if self.penalty != "squared" or self.alpha:
            return "pairwise"
        return "adjacent" if problem.n_groups <= FEW_GROUPS else "pooled"

    def _starts(self, problem: Problem) -> list[Array]:
        d, r = problem.moments.n_features, problem.n_components
        if self._is_random:
            rng = np.random.default_rng(self.random_state or 0)
            return [qr_factor(rng.standard_normal((d, r))) for _ in range(self.n_restarts)]
        if isinstance(self.start, str):
            return [problem.pca_basis]
        given = np.asarray(self.start, dtype=np.float64)
        if given.shape != (d, r) or np.linalg.matrix_rank(given) < r:
            raise ValueError(
                f"start must be an array of shape {(d, r)} with independent columns, got shape "
                f"{given.shape}."
            )
        return [polar_factor(given)]

    def _descend(self, problem: Problem, basis: Array, progress: Progress | None) -> Descent:
        vector = self._vector(problem)
        tangent = _project if self.geometry == "riemannian" else None
        common: dict[str, Any] = {
            "retract": polar_factor,
            "normalize": self.normalize,
            "zero": ROUNDING * vector.units(problem),
            "tol": self.tol if self.normalize else self.tol * problem.scale,
        }
        length: dict[str, Any] = {"step_size": self.step_size, "max_iter": self.max_iter}

        def evaluate(point: Array) -> tuple[Array, Array]:
            return vector.evaluate(problem, point, tangent)

        def values_of(point: Array) -> Array:
            return vector.values(problem, point)

        def differences(point: Array) -> Differences:
            return vector.differences(problem, point, tangent) or (np.empty(0), np.empty(0))

        if self.step == "adaptive":
            descent = AdaptiveDescent(
                evaluate, values_of, differences, unit=problem.scale, **common
            )
            return descent.run(basis, progress=progress, **length)
        return descend(
            evaluate, values_of, basis, step=self.step, progress=progress, **common, **length
        )


def non_dominated(values: Array) -> np.typing.NDArray[np.bool_]:
    """Which rows no other row dominates: is nowhere larger than, and somewhere smaller."""
    no_larger = (values[:, None, :] <= values[None, :, :]).all(axis=2)
    smaller = (values[:, None, :] < values[None, :, :]).any(axis=2)
    return ~np.asarray((no_larger & smaller).any(axis=0))


def _project(basis: Array, gradients: Array) -> Array:
    """Part of each gradient that is tangent to orthonormal bases (Stiefel manifold)."""
    inner = basis.T @ gradients
    tangent: Array = gradients - basis @ ((inner + inner.transpose(0, 2, 1)) / 2)
    return tangent


def _appendix_alpha(problem: Problem, *, each_pair: bool) -> float | Array:
    """The paper's appendix: above every ``gamma_max(A_j) - gamma_min(A_i)``, and zero.

    For each pair it is the larger of both ways round, as pairs have no order; for the total loss
    the largest of all. The paper's term is ``alpha/2 |U|^2`` there and ``alpha |U|^2`` in the text;
    the larger coefficient satisfies both.
    """
    values = np.linalg.eigvalsh(problem.matrices)
    gaps = np.maximum(values[None, :, -1] - values[:, None, 0], 0.0)
    most = float(values[:, -1].max() - values[:, 0].min())
    if not each_pair:
        return max(most, 0.0)
    return np.array([most, *np.maximum(gaps, gaps.T)[np.triu_indices(len(gaps), 1)]])
