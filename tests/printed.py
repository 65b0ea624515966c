"""Algorithm 1 written a second time, from the paper's text alone, row by row and without haste.

It shares no line with the library: losses are those of rows (equations 2 to 4), own subspaces come
from singular vectors, and the direction (equation 17) from its dual (appendix B) by trying every
face of the simplex.
"""

from itertools import chain, combinations

import numpy as np


def own_best_loss(rows, r):
    """What rows lose in their own best subspace: the smaller singular values, squared."""
    return float(np.square(np.linalg.svd(rows, compute_uv=False)[r:]).sum())


def loss(rows, U):
    """Equation 2."""
    return float(np.square(rows - rows @ U @ U.T).sum())


def shortest(gradients):
    """The shortest vector in the convex hull of the gradients, and its weights.

    On the face of the hull that it lies in, it is the shortest of an affine space.
    """
    m = len(gradients)
    faces = chain.from_iterable(combinations(range(m), size) for size in range(1, m + 1))
    best, weights = None, None
    for face in map(list, faces):
        first = gradients[face[0]]
        edges = np.array([gradients[i] - first for i in face[1:]]).reshape(
            len(face) - 1, len(first)
        )
        shares = np.linalg.lstsq(edges.T, -first, rcond=None)[0]
        on_face = np.concatenate([[1.0 - shares.sum()], shares])
        if on_face.min() < -1e-12:
            continue
        point = on_face @ gradients[face]
        if best is None or np.linalg.norm(point) < np.linalg.norm(best) - 1e-15:
            best, weights = point, np.zeros(m)
            weights[face] = on_face
    return best, weights


def pareto_fair_pca(
    groups, U, steps, *, pairwise=True, psi="squared", alpha=0.0, means=False, beta=None
):
    """All points of a run: Algorithm 1, with normalised gradients (remark 1) and 1 / sqrt(t).

    `groups` are the groups' rows, `alpha` a number or one for each objective. With `beta` the step
    is that of the line search (equation 16), from 1/2 on.
    """
    r, everyone = U.shape[1], np.vstack(groups)
    sizes = [len(rows) if means else 1.0 for rows in groups]
    n = len(everyone) if means else 1.0
    scatters = [rows.T @ rows / size for rows, size in zip(groups, sizes, strict=True)]
    everyone_scatter = everyone.T @ everyone / n
    own = [own_best_loss(rows, r) / size for rows, size in zip(groups, sizes, strict=True)]
    chosen = list(combinations(range(len(groups)), 2)) if pairwise else range(len(groups))
    alphas = np.broadcast_to(alpha, (1 + len(chosen),))
    penalty = {
        "squared": lambda z: z * z / 2,
        "absolute": abs,
        "exponential": lambda z: np.exp(-z),
    }[psi]
    slope = {"squared": lambda z: z, "absolute": np.sign, "exponential": lambda z: -np.exp(-z)}[psi]

    def errors(U):
        # Off the orthonormal bases, as in the line search: X - X U U^T of equation 13's trace form.
        return [
            np.trace(scatter) - np.trace(U.T @ scatter @ U) - best
            for scatter, best in zip(scatters, own, strict=True)
        ]

    def objectives(U):
        found = errors(U)
        z = [found[c[0]] - found[c[1]] if pairwise else found[c] for c in chosen]
        total = np.trace(everyone_scatter) - np.trace(U.T @ everyone_scatter @ U)
        return np.array([total, *map(penalty, z)]) + alphas * np.square(U).sum()

    def gradients(U):
        found = errors(U)
        parts = [-2 * scatter @ U for scatter in scatters]
        result = [-2 * everyone_scatter @ U]
        for c in chosen:
            if pairwise:
                i, j = c
                result.append(slope(found[i] - found[j]) * (parts[i] - parts[j]))
            else:
                result.append(slope(found[c]) * parts[c])
        return [G + 2 * a * U for G, a in zip(result, alphas, strict=True)]

    path = [U]
    for t in range(1, steps + 1):
        G = gradients(U)
        D, _ = shortest(np.array([(one / np.linalg.norm(one)).ravel() for one in G]))
        D = -D.reshape(U.shape)
        eta = 1 / np.sqrt(t)
        if beta is not None:
            eta, now = 0.5, objectives(U)
            slopes = np.array([np.trace(D.T @ one) for one in G])
            while (objectives(U + eta * D) > now + beta * eta * slopes).any():
                eta /= 2
        left, _, right = np.linalg.svd(U + eta * D, full_matrices=False)
        U = left @ right
        path.append(U)
    return path
