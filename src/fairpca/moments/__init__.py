"""GroupMoments: all that is kept of the rows, and how it is summed up."""

from fairpca.moments.group_moments import GroupMoments, MomentSum

__all__ = ["GroupMoments", "MomentSum"]
