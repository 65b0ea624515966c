"""Sampling noise: how well the rows know the groups' disparities, and baselines with less bias.

A group's own PCA fits its rows too well, so its disparity is too large in expectation, the more so
the fewer its rows. On held-out rows the own PCA does too badly, being found with fewer rows. The
geometric mean of what it keeps of both is nearly without bias. How much a measure varies from
sample to sample is seen from folds, and follows from the covariances where the rows are normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from fairpca._linalg.types import NEGLIGIBLE, Array
from fairpca.exceptions import warn_user
from fairpca.folds import N_FOLDS, are_large
from fairpca.generalization.cross_fit import FoldProblems
from fairpca.group_table import HeldOut
from fairpca.measures import SUM_ROUNDING
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers import ExactSolver

_ENOUGH = 5
"""Rows for each column from which the bias falls as one over the number of rows, so that the biases
of n rows in sample and of 4/5 n rows held out in five folds cancel with powers of 5/9 and 4/9."""

_FEW_DIGITS = 1e-4
"""Rounding, as a share of what PCA loses, from which on standard errors are not known: a column
varies so much more than the others that what is lost is nearly all rounding."""

_LEAST_TEMPERATURE = 0.02
"""Share of the worst-off group's excess over the mean that the temperature has at least."""

_WHOLE_WEIGHT = 2.0
"""An excess of this multiple of `standard_errors` gives the worst-off group the weight that all
groups have together at none."""


_TIED = 0.25
"""Dimensions by which subspaces of the same weights differ between folds, beyond those of ordinary
PCA, from which on eigenvalues are taken to be nearly tied."""

_FOLD_GAP = 1e-2
"""Relative gap of the problems that are then solved: far below the standard errors."""


@dataclass(frozen=True, eq=False)
class SamplingNoise:
    """What is known of the noise in the groups' measures with ordinary PCA.

    Attributes
    ----------
    problem : Problem
        That of all rows, with a `SoftMinMax`.
    folds : FoldProblems or None
        Where rows were held out.
    own_losses : array of shape (k,)
        Loss of each group with its own PCA, with the bias reduced.
    standard_errors : array of shape (k,)
        Of what each group's measure is with ordinary PCA, before it is divided by any unit.
    pca_losses : array of shape (k,)
        Loss of each group with ordinary PCA, on held-out rows where there are any.
    """

    problem: Problem
    folds: FoldProblems | None
    own_losses: Array
    standard_errors: Array
    pca_losses: Array

    @classmethod
    def of_problem(
        cls, problem: Problem, cells: GroupMoments | None, groups: str | None
    ) -> SamplingNoise:
        """Estimate the noise from the moments of folds.

        Parameters
        ----------
        problem : Problem
            That of all rows.
        cells : GroupMoments or None
            Moments by group and fold; None where all groups are large.
        groups : str or None
            What groups the problem has, as for `FairPCA`.
        """
        moments, measured = problem.moments, problem.criterion.measured
        n = moments.effective_count
        if cells is None and problem.n_groups > 1 and not are_large(n, moments.n_features).all():
            raise ValueError(
                "criterion='soft' needs moments by fold: take them with folds=True, as "
                "GroupMoments.from_rows and read_moments do, or choose another criterion, such as "
                "'minmax'."
            )
        in_sample = np.maximum(problem.traces - problem.own_gains, 0.0)
        # In units of the variance, as squares of its own could overflow.
        unit = problem.scale or 1.0
        variances = _normal_variances(problem, unit)
        folds = None if cells is None else FoldProblems(cells, groups, problem)
        if folds is None or not folds.numbers:
            pca_losses = problem.group_losses(problem.pca_basis)
            return cls(problem, None, in_sample, unit * np.sqrt(variances), pca_losses)
        traces, pca, own = folds.traces, folds.kept(folds.pca_bases), folds.own_kept()
        measures = own - pca if measured.is_disparity else traces - pca
        if measured.is_kept and not measured.relative:
            measures = -pca
        deviations = (measures - folds.shares * measures.sum(axis=0)) / unit
        n_folds = len(folds.numbers)
        folded = n_folds / max(n_folds - 1, 1) * np.square(deviations).sum(axis=0)
        held_out = ~folds.not_held_out
        # Few folds know a variance badly: all groups' together, by the number of rows, better.
        pooled = float((n * folded)[held_out].mean()) / n if held_out.any() else np.zeros(len(n))
        variances = np.maximum.reduce([folded, np.where(held_out, pooled, 0.0), variances])
        gains = debiased_gains(moments, n_folds, problem.own_gains, own.sum(axis=0))
        own_losses = np.maximum(problem.traces - gains, in_sample)
        pca_losses = (traces - pca).sum(axis=0)
        return cls(problem, folds, own_losses, unit * np.sqrt(variances), pca_losses)

    def debiased(self) -> Problem:
        """The problem with less biased baselines and the temperature of its noise."""
        problem, criterion = self.problem, self.problem.criterion
        temperature = np.inf
        if _has_few_digits(problem) and criterion.standard_errors < np.inf:
            warn_user(
                "One column varies so much more than the others that standard errors are lost to "
                "rounding, and this is ordinary PCA: standardise the columns, or choose another "
                "criterion, such as 'minmax'."
            )
        elif problem.n_groups > 1 and problem.scale > 0.0 and criterion.standard_errors < np.inf:
            # Without folds the baselines are those of the rows.
            if criterion.measured.is_disparity and self.folds is not None:
                constants = problem.traces - self.own_losses
                problem = problem.measured_from(constants, problem.affine.units)
            temperature = self._temperature(problem)
        soft = copy(criterion)
        soft.temperature = temperature
        return problem.with_criterion(soft)

    def _temperature(self, problem: Problem) -> float:
        """That at which differences of several standard errors are acted on."""
        affine, standard_errors = problem.affine, float(problem.criterion.standard_errors)
        if standard_errors == 0.0:
            return 0.0
        measures = affine.values(problem.kept(problem.pca_basis))
        worst, shares = int(measures.argmax()), affine.weights / affine.weights.sum()
        excess = float(measures[worst] - shares @ measures)
        if not excess > NEGLIGIBLE * affine.scale:
            return np.inf
        error = float(self.standard_errors[worst] / affine.units[worst])
        # A group with the share p weighs p exp(E / T), which is 1 at an excess E of T log(1 / p):
        # the same evidence then counts as much for a small group as for a large one.
        enough = _WHOLE_WEIGHT * standard_errors * error
        temperature = enough / max(-float(np.log(shares[worst])), np.finfo(float).tiny)
        return max(temperature, _LEAST_TEMPERATURE * excess)

    def held_out(self, solution: Solution) -> HeldOut | None:
        """What the groups lose on held-out rows, with PCA of rows weighted as in a solution.

        In each fold's training rows groups get the weights that were found with all rows: numbers
        far fewer than those of a subspace, and one eigenproblem. Where eigenvalues are nearly tied,
        weights do not determine a subspace, so the problem of the training rows is solved instead,
        for few folds; with many columns, where this would take too long, the weights are used all
        the same.
        """
        folds, weights = self.folds, np.maximum(solution.certificate.multipliers, 0.0)
        if folds is None or not weights.any():
            return None
        bases = folds.weighted_bases(weights / self.problem.affine.units)
        problem, pca_losses = self.problem, self.pca_losses
        if not problem.is_expensive and (
            _turn(bases, solution.basis) > _TIED + _turn(folds.pca_bases, problem.pca_basis)
        ):
            folds = folds.with_fewer_folds(N_FOLDS)
            temperature = solution.certificate.temperature
            bases = [self._solved(folds.training(fold), temperature) for fold in folds.numbers]
            pca_losses = (folds.traces - folds.kept(folds.pca_bases)).sum(axis=0)
        losses = (folds.traces - folds.kept(bases)).sum(axis=0)
        return HeldOut(pca_losses, losses, self.own_losses, problem.weights)

    def _solved(self, training: Problem, temperature: float) -> Array:
        """The subspace of some of the rows, with the baselines and the temperature of all."""
        if training.criterion.measured.is_disparity:
            labels = self.problem.moments.labels
            there = [labels.index(label) for label in training.moments.labels]
            constants = training.traces - self.own_losses[there]
            training = training.measured_from(constants, training.affine.units)
        soft = copy(training.criterion)
        soft.temperature = temperature
        return ExactSolver(gap=_FOLD_GAP, n_starts=2).solve(training.with_criterion(soft)).basis


def _turn(bases: Sequence[Array], basis: Array) -> float:
    """The most dimensions of a subspace that another one lacks."""
    least = min(float(np.square(each.T @ basis).sum()) for each in bases)
    return float(basis.shape[1]) - least


def _has_few_digits(problem: Problem) -> bool:
    """Whether rounding is much of what PCA loses, and that is not rounding alone."""
    if problem.graded_losses is None or problem.n_groups == 1:
        return False
    lost = problem.total_loss(problem.pca_basis)
    rounding = SUM_ROUNDING * float(problem.traces.max())
    own_rounding = problem.rounding * float(problem.affine.units.max())
    return _FEW_DIGITS * lost < rounding and own_rounding < _FEW_DIGITS * lost


def debiased_gains(moments: GroupMoments, n_folds: int, in_sample: Array, held_out: Array) -> Array:
    """What groups keep with their own PCA of new rows, nearly without bias; (k,).

    The geometric mean of what it keeps in sample (too much) and on held-out rows (too little).
    With d columns, n rows and one axis of variance v among many of variance 1, both are off by the
    same factor, 1 + d / (n v); the arithmetic mean is right only where this is near 1.
    """
    many = moments.effective_count >= _ENOUGH * moments.n_features
    power = np.where(many, n_folds / (2 * n_folds - 1), 0.5)
    gains: Array = np.maximum(in_sample, 0.0) ** power * np.maximum(held_out, 0.0) ** (1.0 - power)
    return gains


def _normal_variances(problem: Problem, unit: float) -> Array:
    """Sampling variances of the measures in a unit, with ordinary PCA if rows are normal; (k,)."""
    measured, pca, found = problem.criterion.measured, problem.pca_basis, []
    matrices = problem.group_matrices
    put, host = matrices.backend.put, matrices.backend.host
    for which, own in zip(np.eye(problem.n_groups), problem.own_subspaces, strict=True):
        # A share that is kept varies as what is lost does.
        if measured.is_disparity or (measured.is_kept and not measured.relative):
            both = np.hstack([own, pca]) if measured.is_disparity else pca
            signs = np.repeat([1.0, -1.0], [both.shape[1] - pca.shape[1], pca.shape[1]])
            image = host(matrices.weighted_sum(which).image(put(both)))
            inner = both.T @ (image / unit) * signs
            found.append(2.0 * float((inner * inner.T).sum()))
        else:
            matrix = matrices.dense(which) / unit
            image = matrix @ pca
            squares = np.square(matrix).sum() - 2.0 * np.square(image).sum()
            found.append(2.0 * max(float(squares + np.square(pca.T @ image).sum()), 0.0))
    return np.maximum(found, 0.0) / problem.moments.effective_count
