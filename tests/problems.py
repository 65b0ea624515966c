"""Random problems for the tests, the ugly ones among them."""

from __future__ import annotations

import numpy as np

from fairpca import GroupMoments, Problem

from asked import with_criterion

KINDS = (
    "general",
    "low rank",
    "diagonal",
    "integer diagonal",
    "block",
    "identical",
    "repeated eigenvalues",
    "commuting",
    "permuted",
    "constant columns",
    "other scales",
)


def problem_of(matrices, r, weights=None, *, criterion="equal", **choices):
    """A problem whose groups have exactly these second moments, centred at zero.

    Unless said it is about equality, in which every ending of a solver can be reached.
    """
    matrices = np.asarray(matrices, dtype=float)
    k, d, _ = matrices.shape
    weight = np.full(k, 100.0) if weights is None else np.asarray(weights, dtype=float)
    moments = GroupMoments(
        labels=tuple(range(k)),
        count=np.full(k, 100),
        weight=weight,
        mean=np.zeros((k, d)),
        scatter=matrices * weight[:, None, None],
    )
    return Problem(moments, r, **with_criterion({"criterion": criterion, **choices}))


def random_matrices(rng, kind, k, d):
    """Positive semidefinite matrices of a kind."""
    if kind == "low rank":
        matrices = [_gram(rng, d, int(rng.integers(1, d + 1))) for _ in range(k)]
    elif kind == "diagonal":
        matrices = [np.diag(rng.uniform(0, 3, d)) for _ in range(k)]
    elif kind == "integer diagonal":
        matrices = [np.diag(rng.integers(0, 4, d).astype(float)) for _ in range(k)]
    elif kind == "block":
        matrices = [_block(rng, d) for _ in range(k)]
    elif kind == "identical":
        matrices = [_gram(rng, d, d)] * k
    elif kind == "repeated eigenvalues":
        matrices = [_with_spectrum(rng, rng.integers(1, 3, d).astype(float)) for _ in range(k)]
    elif kind == "commuting":
        turn = _rotation(rng, d)
        matrices = [turn @ np.diag(rng.uniform(0, 3, d)) @ turn.T for _ in range(k)]
    elif kind == "permuted":
        spectrum = rng.uniform(0, 3, d)
        matrices = [np.diag(rng.permutation(spectrum)) for _ in range(k)]
    elif kind == "constant columns":
        matrices = [_gram(rng, d, d) for _ in range(k)]
        gone = rng.random(d) < 0.3
        for matrix in matrices:
            matrix[gone] = 0.0
            matrix[:, gone] = 0.0
    elif kind == "other scales":
        matrices = [_gram(rng, d, d) * 10 ** rng.uniform(-3, 3) for _ in range(k)]
    else:
        matrices = [_gram(rng, d, d) for _ in range(k)]
    return np.array([(matrix + matrix.T) / 2 for matrix in matrices])


def random_problem(rng, kind, k, d, r, *, scale=1.0, **choices):
    """A problem of a kind, with groups of very different sizes."""
    matrices = random_matrices(rng, kind, k, d) * scale
    return problem_of(matrices, r, rng.dirichlet(np.ones(k)) * 1000 + 1, **choices)


def planted_problem(rng, matrices, r, **choices):
    """A problem in which some subspace has the disparity 1 in every group, if all lose there."""
    d = matrices.shape[1]
    leading = np.linalg.eigh(matrices.sum(axis=0))[1][:, -r:]
    planted = np.linalg.qr(leading + 0.3 * rng.standard_normal((d, r)))[0]
    own = np.linalg.eigvalsh(matrices)[:, -r:].sum(axis=1)
    lost = own - np.einsum("ia,kij,ja->k", planted, matrices, planted)
    matrices = matrices / np.maximum(lost, 1e-9)[:, None, None]
    return problem_of(matrices, r, rng.uniform(1, 100, len(matrices)), **choices)


def padded_problem(rng, d, **choices):
    """A few columns that matter, and others that are isotropic with a level for each group."""
    k, core, r = (int(rng.choice(some)) for some in ([3, 4, 6], [4, 5, 6], [2, 3]))
    matrices = np.zeros((k, d, d))
    matrices[:, :core, :core] = random_matrices(rng, "general", k, core)
    levels = rng.uniform(0, 1, k) * rng.choice([0.3, 1.0, 2.0, 4.0])
    matrices[:, range(core, d), range(core, d)] = levels[:, None]
    return problem_of(matrices, r, rng.uniform(1, 100, k), **choices)


def random_basis(rng, d, r):
    """A random subspace."""
    return np.linalg.qr(rng.standard_normal((d, r)))[0]


def _gram(rng, d, rank):
    factor = rng.standard_normal((d, rank)) * rng.uniform(0.1, 3, rank)
    return factor @ factor.T


def _block(rng, d):
    matrix = np.zeros((d, d))
    half = d // 2
    if half:
        matrix[:half, :half] = _gram(rng, half, half)
    matrix[half:, half:] = _gram(rng, d - half, d - half)
    return matrix


def _with_spectrum(rng, spectrum):
    turn = _rotation(rng, len(spectrum))
    return turn @ np.diag(spectrum) @ turn.T


def _rotation(rng, d):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]
