"""Proofs at the edge of what is possible: the least loss of subspaces that come as near as any.

There the weights of the dual grow without bound, towards those that prove where the edge is.
docs/exact_solver.md, section 11.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.criteria import WARM_MU, LeastLoss
from fairpca.solvers._exact.dual import SUM_ROUNDING, DualResult
from fairpca.solvers._exact.forms import WholeSpace
from fairpca.solvers._exact.relaxed import solve_dual

_TIMES, _TRIED = 10.0 ** np.arange(0.0, 8.5, 0.5), 4
"""How many times the weights that prove the edge of what is possible are tried, and how many of
these are worth a proof."""

_FAR_MUS, _PART_MUS, _KNOWN_MU = (0.3, 0.1), (0.01, 0.1, 0.001), 1e-7
"""Where mu begins, in turn, if nothing is known of the weights or a part of them, and where if they
nearly are."""

_PART_TIMES = (10.0, 100.0, 1000.0)
"""How many times the weights that prove the edge make the part that is known."""

_FEW_WAYS = 2
"""How many ascents are worth it there if they are expensive."""


def edge_weights(space: WholeSpace, goal: LeastLoss, proof: Array) -> list[Array]:
    """Weights for the total loss with several times those that prove the edge, the best first.

    Larger ones leave less of a gap, and lose more to rounding.
    """

    def value(weights: Array) -> float:
        kept = float(space.forms.spectrum(weights).values[: space.forms.r].sum())
        noise = SUM_ROUNDING * space.forms.scale * float(np.abs(weights).sum())
        return float(weights @ space.forms.constants) - goal.cost(weights) - kept - noise

    ahead = [space.forms.weights + times * proof for times in _TIMES]
    space.n_eigen += len(ahead)
    return sorted(ahead, key=value, reverse=True)[:_TRIED]


def edge_ascents(
    space: WholeSpace,
    exactly: LeastLoss,
    allowed: LeastLoss,
    proof: Array,
    *,
    alone: bool,
    few: bool,
) -> Iterator[DualResult]:
    """Dual solutions at the edge, where some room is allowed or none, one after the other.

    Ascents begin with many times the weights of the proof. Unless one subspace is `alone` at the
    edge, other weights matter as well, and they first begin far away, and with some times these.
    Rounding decides how far they come, and the best one counts. A `few` are tried if they are
    expensive.
    """
    plain = space.forms.weights
    cold: list[Any] = [(allowed, None, mu) for mu in _FAR_MUS]
    part = [(allowed, plain + t * proof, mu) for mu in _PART_MUS for t in _PART_TIMES]
    warm = [
        (goal, weights, mu)
        for goal in (exactly, allowed)
        for best in [edge_weights(space, goal, proof)[:2]]
        for mu in (_KNOWN_MU, WARM_MU)
        for weights in sorted(best, key=lambda one: -float(np.abs(one).sum()))
    ]
    ways = [*warm, *cold] if alone else [*cold, *part, *warm]
    highest: DualResult | None = None
    for goal, near, mu in ways[:_FEW_WAYS] if few else ways:
        dual = solve_dual(space, goal, near=near, first_mu=mu)
        if goal is allowed and (highest is None or dual.value > highest.value):
            highest = dual
        yield dual
    if highest is not None and not few:
        yield solve_dual(space, allowed, near=highest.weights)
