"""Problems with any measure, and measures by their definitions."""

import numpy as np
import pytest

from problems import problem_of, random_matrices

ALL = [(measure, relative) for measure in ("disparity", "loss", "variance") for relative in (0, 1)]
every_measure = pytest.mark.parametrize(("measure", "relative"), ALL)


def posed(matrices, r, measure="disparity", relative=False, weights=None, **asked):
    choices = {"criterion": "minmax", "measure": measure, "relative": bool(relative)} | asked
    return problem_of(matrices, r, weights, **choices)


def scaled_matrices(rng, kind, k, d):
    matrices = random_matrices(rng, kind, k, d)
    return matrices / np.trace(matrices, axis1=1, axis2=2).max()


def constants_and_units(problem):
    """c_i and s_i by their definitions, from the matrices alone."""
    traces = np.trace(problem.matrices, axis1=1, axis2=2)
    own = np.linalg.eigvalsh(problem.matrices)[:, -problem.n_components :].sum(axis=1)
    measure = problem.goal.measured
    constants = {"own": own, "all": traces, "none": 0.0 * own}[measure.baseline]
    return constants, traces if measure.relative else np.ones_like(traces)


def measures_of(problem, bases):
    """Measures (n, k) and total losses (n,) of bases (n, d, r)."""
    constants, units = constants_and_units(problem)
    kept = np.einsum("kij,nia,nja->nk", problem.matrices, bases, bases, optimize=True)
    losses = np.trace(problem.matrices, axis1=1, axis2=2) - kept
    return (constants - kept) / units, losses @ problem.weights


def random_bases(rng, n, d, r):
    return np.linalg.qr(rng.standard_normal((n, d, r)))[0]
