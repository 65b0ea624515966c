"""The temperature that `SoftMinMax` gets from it."""

import numpy as np
import pytest
from scipy.special import softmax

from fairpca import GroupMoments, Problem, SoftMinMax
from fairpca.generalization.noise import SamplingNoise
from studies.new_data import METHODS, Family, population_disparities


def moments(sizes, seed=0):
    family = Family("", 0.7, sizes)
    rng = np.random.default_rng(seed)
    X, groups = family.rows(family.covariances(rng), rng)
    return GroupMoments.from_rows(X, groups, folds=True)


@pytest.mark.parametrize("sizes", [(1000, 20), (1000, 400), (700, 600)])
@pytest.mark.parametrize("measure", ["disparity", "share_lost"])
def test_four_standard_errors_are_the_weight_of_everybody(sizes, measure):
    cells = moments(sizes)
    problem = Problem(cells, 5, SoftMinMax(measure))
    noise = SamplingNoise.of_problem(problem, cells, "intersections")
    soft = noise.debiased()
    measures = soft.measures(soft.pca_basis)
    worst = int(measures.argmax())
    shares = soft.affine.weights / soft.affine.weights.sum()
    if measure == "disparity":
        losses = soft.traces - soft.kept(soft.pca_basis)
        np.testing.assert_allclose(measures, losses - noise.own_losses, rtol=1e-9)
    # If the worst-off group had an excess of four standard errors and the others were equal, its
    # odds against them were one to their share.
    excess = np.zeros(2)
    excess[worst] = 4.0 * noise.standard_errors[worst] / soft.affine.units[worst]
    weights = softmax(excess / soft.criterion.temperature + np.log(shares))
    odds = weights[worst] / weights[1 - worst]
    assert odds == pytest.approx(1.0 / shares[1 - worst])


def test_few_rows_that_truly_differ_are_heard_and_those_that_do_not_are_not():
    ratios = {}
    for apart in (0.0, 0.7):
        family, found = Family("", apart, (3000, 1000, 20)), {"PCA": 0.0, "soft": 0.0}
        for seed in range(5):
            rng = np.random.default_rng(seed)
            covariances = family.covariances(rng)
            X, groups = family.rows(covariances, rng)
            for method in found:
                components = METHODS[method](X, groups, 5).components_
                found[method] += population_disparities(covariances, components).max()
        ratios[apart] = found["soft"] / found["PCA"]
    assert ratios[0.0] < 1.1
    assert ratios[0.7] < 0.95
