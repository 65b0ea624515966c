"""Criteria applied to the weights of forms alone, without a problem, for parts of the solver."""

from types import SimpleNamespace

import numpy as np

from fairpca.criteria import AtMost, Equal, MinMax, _LargestExcess, _MinMaxWithinBudget, _Spread
from fairpca.solvers._dual import mu_unit


def _at(criterion, weights):
    weights = np.asarray(weights)
    criterion.affine = SimpleNamespace(loss_weights=weights, weights=weights)
    return criterion


def equal(weights, tolerance=0.0):
    return _at(Equal(tolerance), weights)


def minmax(k):
    return _at(MinMax(), np.full(k, 1 / k))


def spread(k):
    return _at(_Spread(), np.full(k, 1 / k))


def excess(upper_bounds):
    criterion = _at(_LargestExcess(), np.full(len(upper_bounds), 1 / len(upper_bounds)))
    criterion.upper_bounds = np.asarray(upper_bounds)
    return criterion


def at_most(weights, upper_bounds):
    criterion = _at(AtMost(0.0), weights)
    criterion.upper_bounds = np.asarray(upper_bounds)
    return criterion


def within_budget(weights, budget):
    criterion = _at(_MinMaxWithinBudget(max_extra_loss=0.1), weights)
    criterion.__dict__["_budget"] = budget
    return criterion


def domain(forms, criterion, near=None):
    return criterion.domain(near, mu_unit(forms))
