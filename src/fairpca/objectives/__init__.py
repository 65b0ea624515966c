"""What a subspace is judged by: the paper's objectives, others, and how to write one's own.

An objective is anything with a `name` and two methods, ``value(problem, basis)`` and
``gradient(problem, basis)``: a number to be minimised, and its derivative with respect to the
basis U, of the same shape. `ParetoDescent` takes a list of them. `descent_direction` is its
direction for the gradients of any other model.
"""

from fairpca.objectives.direction import descent_direction
from fairpca.objectives.single import (
    LossDifference,
    MeanDistance,
    NashObjective,
    Objective,
    SmallestVariance,
    TotalLoss,
)
from fairpca.objectives.vectors import (
    PENALTIES,
    Differences,
    PaperObjectives,
    SeparateObjectives,
    pair_differences,
)

__all__ = [
    "PENALTIES",
    "Differences",
    "LossDifference",
    "MeanDistance",
    "NashObjective",
    "Objective",
    "PaperObjectives",
    "SeparateObjectives",
    "SmallestVariance",
    "TotalLoss",
    "descent_direction",
    "pair_differences",
]
