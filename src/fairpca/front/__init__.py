"""Every trade-off between total loss and equality, from PCA to the fairest subspace."""

from fairpca.front.pareto import ParetoFront
from fairpca.front.rows import front_of, gathered_front, pareto_front

__all__ = ["ParetoFront", "front_of", "gathered_front", "pareto_front"]
