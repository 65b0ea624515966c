"""Every trade-off between total loss and fairness, from PCA to the fairest subspace."""

from fairpca.front.pareto import ParetoFront
from fairpca.front.rows import front_of, gathered_front, pareto_front
from fairpca.front.shown import shown_measures, worst_of

__all__ = [
    "ParetoFront",
    "front_of",
    "gathered_front",
    "pareto_front",
    "shown_measures",
    "worst_of",
]
