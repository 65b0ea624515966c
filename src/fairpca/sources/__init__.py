"""Moments of data that need not fit into memory: files, folders and Arrow streams.

Each source is read once, in batches, and leaves a `GroupMoments`, which `FairPCA.fit_moments`
takes. It needs the extra ``fairpca[files]``.
"""

from fairpca.sources._read import read_moments

__all__ = ["read_moments"]
