"""Moments of data that need not fit into memory: files, folders, Arrow streams, Dask and Spark.

Each source is read once, in batches or partitions, and leaves a `GroupMoments`, which
`FairPCA.fit_moments` takes. Files and streams need the extra ``fairpca[files]``, clusters
``fairpca[dask]`` or ``fairpca[spark]``; none of these is imported before it is used. `RowBatches`
gives the rows of files themselves, batch by batch, to `StochasticFairPCA`. `read_embeddings` reads
vectors in a list column.
"""

from fairpca.sources.embeddings import embedding_rows, read_embeddings
from fairpca.sources.one_pass import read_moments, transform_distributed
from fairpca.sources.rows import RowBatches

__all__ = [
    "RowBatches",
    "embedding_rows",
    "read_embeddings",
    "read_moments",
    "transform_distributed",
]
