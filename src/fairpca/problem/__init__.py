"""Problem: moments, a dimension and choices, with the losses and measures that follow."""

from fairpca.problem.posed import Problem, group_matrices

__all__ = ["Problem", "group_matrices"]
