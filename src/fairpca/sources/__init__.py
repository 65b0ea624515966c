"""Moments of data that need not fit into memory: files, folders, Arrow streams, Dask and Spark.

Each source is read once, in batches or partitions, and leaves a `GroupMoments`, which
`FairPCA.fit_moments` takes. Files and streams need the extra ``fairpca[files]``, clusters
``fairpca[dask]`` or ``fairpca[spark]``; none of these is imported before it is used.
"""

from fairpca.sources._dask import dask_moments
from fairpca.sources._read import read_moments
from fairpca.sources._spark import spark_moments, spark_transform

__all__ = ["dask_moments", "read_moments", "spark_moments", "spark_transform"]
