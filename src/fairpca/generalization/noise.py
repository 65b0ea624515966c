"""Sampling noise: how well the rows know the groups' disparities, and baselines with less bias.

A group's own PCA fits its rows too well, so its disparity is too large in expectation, the more so
the fewer its rows. On held-out rows the own PCA does too badly, being found with fewer rows; a
weighted mean of both is nearly without bias. How much a measure varies from sample to sample is
seen from folds, and follows from the covariances where the rows are normal.
"""

from dataclasses import dataclass, replace

import numpy as np

from fairpca._linalg.types import Array
from fairpca.criteria import SoftMinMax
from fairpca.folds import N_FOLDS, are_large
from fairpca.generalization.cross_fit import FoldProblems
from fairpca.moments import GroupMoments
from fairpca.problem import Problem

_ENOUGH = 5
"""Rows for each column from which the bias falls as one over the number of rows, so that the biases
of n rows in sample and of 4/5 n rows held out cancel with weights of 5/9 and 4/9."""

_LEAST_TEMPERATURE = 0.02
"""Share of the worst-off group's excess over the mean that the temperature has at least."""

_WHOLE_WEIGHT = 2.0
"""An excess of so many times `standard_errors` gives the worst-off group the weight that all groups
have together at none."""

_NO_EXCESS = 1e-12
"""Such an excess, relative to the scale of the measures, is rounding."""


@dataclass(frozen=True, eq=False)
class SamplingNoise:
    """What is known of the noise in the groups' measures with ordinary PCA.

    Attributes
    ----------
    own_losses : array of shape (k,)
        Loss of each group with its own PCA, with the bias reduced.
    standard_errors : array of shape (k,)
        Of what each group's measure is with ordinary PCA, before it is divided by any unit.
    """

    own_losses: Array
    standard_errors: Array


def sampling_noise(
    problem: Problem, cells: GroupMoments | None, groups: str | None
) -> SamplingNoise:
    """Estimate the noise in a problem's measures from the moments of its folds.

    Parameters
    ----------
    problem : Problem
        That of all rows.
    cells : GroupMoments or None
        Moments by group and fold; None where all groups are large.
    groups : str or None
        What groups the problem has, as for `FairPCA`.

    Returns
    -------
    SamplingNoise
    """
    in_sample = np.maximum(problem.traces - problem.own_gains, 0.0)
    normal = _normal_variances(problem)
    folds = None if cells is None else FoldProblems(cells, groups, problem)
    if folds is None or not folds.numbers:
        return SamplingNoise(in_sample, np.sqrt(normal))
    difference = problem.criterion.measured.baseline == "own"
    held_out, per_fold, shares = np.zeros(problem.n_groups), [], []
    for fold in folds.numbers:
        training = folds.training(fold)
        centers = folds.centers(training)
        traces = folds.traces(fold, centers)
        own = folds.own_kept(fold, training, centers)
        pca = folds.kept(fold, training.pca_basis, centers)
        held_out += traces - own
        per_fold.append(own - pca if difference else traces - pca)
        shares.append(folds.share(fold))
    measures, share = np.array(per_fold), np.array(shares)
    deviations = measures - share * measures.sum(axis=0)
    variances = N_FOLDS / (N_FOLDS - 1) * np.square(deviations).sum(axis=0)
    n = problem.moments.effective_count
    folded = ~folds.not_held_out
    # Few folds know a variance badly: all groups' together, by the number of their rows, better.
    pooled = float((n * variances)[folded].mean()) / n if folded.any() else np.zeros(len(n))
    variances = np.maximum.reduce([variances, np.where(folded, pooled, 0.0), normal])
    most = N_FOLDS / (2 * N_FOLDS - 1)
    part = np.where(n >= _ENOUGH * problem.moments.n_features, most, 0.5)
    own_losses = part * in_sample + (1.0 - part) * np.maximum(held_out, in_sample)
    return SamplingNoise(own_losses, np.sqrt(variances))


def _normal_variances(problem: Problem) -> Array:
    """Sampling variances of the measures with ordinary PCA if rows are normal; (k,)."""
    found = []
    for i, own in enumerate(problem.own_subspaces):
        matrix = problem.weighted_sum(np.eye(problem.n_groups)[i])
        if problem.criterion.measured.baseline == "own":
            both = np.hstack([own, problem.pca_basis])
            signs = np.repeat([1.0, -1.0], own.shape[1])
            inner = both.T @ (matrix @ both) * signs
            found.append(2.0 * float((inner * inner.T).sum()))
        else:
            image = matrix @ problem.pca_basis
            inside = problem.pca_basis.T @ image
            squares = np.square(matrix).sum() - 2.0 * np.square(image).sum()
            found.append(2.0 * max(float(squares + np.square(inside).sum()), 0.0))
    return np.maximum(found, 0.0) / problem.moments.effective_count


def debiased_problem(problem: Problem, cells: GroupMoments | None, groups: str | None) -> Problem:
    """The problem of a `SoftMinMax` with less biased baselines and the temperature of its noise."""
    moments, criterion = problem.moments, problem.criterion
    if problem.n_groups == 1 or problem.scale == 0.0 or np.isinf(criterion.standard_errors):
        return _at(problem, np.inf)
    if cells is None and not are_large(moments.effective_count, moments.n_features).all():
        raise ValueError(
            "criterion='soft' needs moments by fold: take them with folds=True, as "
            "GroupMoments.from_rows and read_moments do, or give SoftMinMax(temperature=…)."
        )
    noise = sampling_noise(problem, cells, groups)
    # The numbers of the measure; the temperature matters to none of them.
    affine = _at(problem, np.inf).affine
    if criterion.measured.baseline == "own":
        given = (problem.traces - noise.own_losses, affine.units)
        problem = replace(problem, measured_by=given)
        affine = _at(problem, np.inf).affine
    measures = affine.values(problem.kept(problem.pca_basis))
    worst, shares = int(measures.argmax()), affine.weights / affine.weights.sum()
    excess = float(measures[worst] - shares @ measures)
    if not excess > _NO_EXCESS * affine.scale:
        return _at(problem, np.inf)
    error = float(noise.standard_errors[worst] / affine.units[worst])
    # A group with the share p weighs p exp(E / T), which is 1 at an excess E of T log(1 / p): the
    # same evidence then counts as much for a small group as for a large one.
    enough = _WHOLE_WEIGHT * criterion.standard_errors * error
    temperature = enough / max(-float(np.log(shares[worst])), np.finfo(float).tiny)
    return _at(problem, max(temperature, _LEAST_TEMPERATURE * excess))


def _at(problem: Problem, temperature: float) -> Problem:
    criterion = problem.criterion
    chosen = SoftMinMax(criterion.measure, criterion.standard_errors, temperature)
    return replace(problem, criterion=chosen)
